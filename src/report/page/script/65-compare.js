// Two runs side by side: the same items of A and B. Everything that is chosen is chosen in A; row i of B is the same item.
let other;
const MOST_CHANGES = 25;

// Change of log10 p from A to B; infinite where one of them is zero.
function changeOf(row) {
  const a = row.p,
    b = other.rows[row.id].p;
  if (a === null && b === null) return 0;
  return a === null ? Infinity : b === null ? -Infinity : b - a;
}
const changes = () => shownRows().map(row => ({ row, twin: other.rows[row.id], change: changeOf(row) }));
const largestChanges = () =>
  changes()
    .filter(c => c.change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || a.row.id - b.row.id)
    .slice(0, MOST_CHANGES);
function changeText(change) {
  if (change === 0) return 'none';
  if (change === Infinity) return 'from 0';
  if (change === -Infinity) return 'to 0';
  return `${times(10 ** Math.abs(change))} ${change > 0 ? 'up' : 'down'}`;
}
const median = values => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// Each shown setting in both runs: { ...pooled A, b: pooled B, loss change, how far its estimates moved }.
function compared() {
  const pairs = chosenPairs().length,
    judged = judgedPairs().length,
    all = changes();
  return pooled().map(a => {
    const scores = other.scores.filter(s => s.v === a.v && chosenPair(s)),
      mine = all.filter(c => c.row.v === a.v).map(c => c.change);
    return {
      a,
      b: pool(scores, pairs, judged),
      lossChange: difference(a.v, a.v, state.profile), // A minus B
      moved: median(mine.map(Math.abs)),
      equal: mine.filter(c => c === 0).length,
      n: mine.length,
    };
  });
}
const verdict = c => {
  if (!c.lossChange) return c.a.scored ? 'too few targets' : '–';
  return c.lossChange.low > 0
    ? 'clearly lower in B'
    : c.lossChange.high < 0
      ? 'clearly higher in B'
      : 'not clearly different';
};

function compareTakeaways() {
  const all = changes(),
    entries = compared();
  if (!all.length) return takeawayHtml([['Nothing is chosen', 'Choose at least one method, model and distribution.']]);
  const named = word => listed(entries.filter(c => verdict(c) === word).map(c => label(c.a.v))),
    lower = named('clearly lower in B'),
    higher = named('clearly higher in B');
  const [most] = largestChanges();
  const profile = run.profiles[state.profile].name,
    equal = all.filter(c => c.change === 0).length;
  const loss = !run.meta.scored
    ? ['No truth is known', 'Estimates, intervals and costs are compared, losses are not.']
    : [
        lower || higher ? `The ${profile} loss changed` : `No clear change of the ${profile} loss`,
        [lower && `Clearly lower in B: ${lower}.`, higher && `Clearly higher in B: ${higher}.`]
          .filter(Boolean)
          .join(' ') || 'The targets, resampled in pairs, do not tell the runs apart.',
      ];
  return takeawayHtml([
    [
      `${plural(run.rows.length, 'estimate')} in both runs`,
      `${thousands(run.onlyA)} in A alone, ${thousands(run.onlyB)} in B alone: these are left out.`,
    ],
    [
      most ? `The largest change is ${changeText(most.change)}` : 'No estimate changed',
      `${most ? `${label(most.row.v)} on ${plainName(most.row.model)}, ${plainName(most.row.dist)}: ${visible(most.row.text)}. ` : ''}${thousands(equal)} of ${plural(all.length, 'estimate')} shown are equal.`,
    ],
    loss,
  ]);
}

const fromTo = (text, a, b) => `${text(a)} → ${text(b)}`;
const COMPARE_COLUMNS = [
  ['Loss, A → B', c => fromTo(e => tableLoss(e.loss[state.profile].mean), c.a, c.b), true],
  [
    'Change, with 95% interval',
    c =>
      c.lossChange
        ? `${plain(-c.lossChange.mean, 2)} <small>${plain(-c.lossChange.high, 2)} to ${plain(-c.lossChange.low, 2)}</small>`
        : '–',
    true,
  ],
  ['Verdict', verdict, true],
  ['Typical change of an estimate', c => (c.moved === Infinity ? 'to or from 0' : times(10 ** c.moved))],
  ['Equal', c => `${thousands(c.equal)} of ${thousands(c.n)}`],
  ['Zeros', c => fromTo(e => percent(e.zeros), c.a, c.b)],
  ['Interval holds the truth', c => fromTo(e => percent(e.inside), c.a, c.b), true],
  ['Half-width', c => fromTo(e => times(10 ** (e.width / 2)), c.a, c.b)],
  ['Forward passes', c => fromTo(e => plain(10 ** e.cost, 2), c.a, c.b)],
  ['Time', c => fromTo(e => seconds(e.seconds), c.a, c.b)],
];
const compareColumns = () => COMPARE_COLUMNS.filter(([, , judged]) => !judged || run.meta.scored);
function compareTable() {
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Change per method"><table class="wide" id="compare-table"><thead><tr><th scope="col">Method</th>${compareColumns()
      .map(([title]) => `<th scope="col" class="multi">${title}</th>`)
      .join('')}</tr></thead>` +
    `<tbody>${compared()
      .map(
        c =>
          `<tr><th scope="row">${swatch(c.a.method, label(c.a.v))}</th>${compareColumns()
            .map(([, html]) => `<td>${html(c)}</td>`)
            .join('')}</tr>`,
      )
      .join('')}</tbody></table></div>`
  );
}

const CHANGE_COLUMNS = [
  ['Method', ({ row }) => swatch(row.method, label(row.v)), 'left'],
  ['Model', ({ row }) => escapeHtml(row.model), 'left'],
  ['Dist.', ({ row }) => escapeHtml(row.dist), 'left'],
  ['Target', ({ row }) => `<code>${escapeHtml(visible(row.text))}</code> <small>${row.ids.join(', ')}</small>`, 'left'],
  ['Truth', ({ row }) => (row.q === null ? escapeHtml(truthText(row)) : probability(row.q))],
  ['A', ({ row }) => probability(row.p)],
  ['B', ({ twin }) => probability(twin.p)],
  ['Change', c => changeText(c.change)],
  ['95% interval, A', ({ row }) => `${probability(row.lo)} to ${probability(row.hi)}`],
  ['95% interval, B', ({ twin }) => `${probability(twin.lo)} to ${probability(twin.hi)}`],
  ['Passes', c => fromTo(r => plain(r.cost, 2), c.row, c.twin)],
];
function changesTable() {
  const shown = largestChanges();
  if (!shown.length) return '<p class="why">All estimates shown are equal in both runs.</p>';
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Largest changes"><table class="wide" id="changes-table"><thead><tr>${CHANGE_COLUMNS.map(([t, , side]) => `<th scope="col" class="${side ?? ''}">${t}</th>`).join('')}</tr></thead>` +
    `<tbody>${shown.map(c => `<tr>${CHANGE_COLUMNS.map(([, html, side]) => `<td class="${side ?? ''}">${html(c)}</td>`).join('')}</tr>`).join('')}</tbody></table></div>${downloadButton('changes')}`
  );
}
DOWNLOADS.changes = () => [
  [
    'method',
    'setting',
    'model',
    'dist',
    'target',
    'text',
    'replica',
    'truth',
    'A',
    'B',
    'change of log10',
    'A low',
    'A high',
    'B low',
    'B high',
    'A passes',
    'B passes',
  ],
  ...changes()
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || a.row.id - b.row.id)
    .map(({ row, twin, change }) => [
      row.method,
      row.variant,
      row.model,
      row.dist,
      row.ids.join(' '),
      row.text,
      row.replica,
      row.q === null ? '' : power(row.q),
      power(row.p),
      power(twin.p),
      Number.isFinite(change) ? change : change > 0 ? 'inf' : '-inf',
      power(row.lo),
      power(row.hi),
      power(twin.lo),
      power(twin.hi),
      row.cost,
      twin.cost,
    ]),
];

const COMPARE_FIGURES = [
  {
    id: 'compare',
    kicker: 'Estimates of A against those of B',
    title: compareTitle,
    spec: compareSpec,
    read: 'One point per estimate that both runs have; on the line they are equal. Above it B’s estimate is larger. Points at 0 are estimates of zero in that run.',
  },
];
function comparePageHtml() {
  return (
    '<section id="scoreboard" aria-labelledby="scoreboard-title" style="padding-top:1.8rem"><h2 id="scoreboard-title" class="hidden">In short</h2><div class="takeaways" id="takeaways"></div><div id="compare-methods"></div>' +
    '<figcaption>Only items of both runs count, judged by one truth: of two counts the larger. The change of the loss is B minus A, with the 95% interval of a paired bootstrap over targets. The typical change is the median.</figcaption></section>' +
    COMPARE_FIGURES.map(figureHtml).join('') +
    `<section id="changes" aria-labelledby="changes-title"><p class="kicker">Largest differences</p><h2 id="changes-title"></h2><div id="changes-list"></div></section>` +
    '<details id="left-out" class="suite" hidden><summary></summary><ul></ul></details>'
  );
}
function drawCompareFacts() {
  const told = (name, { meta }) =>
    `${name}: ${meta.suite}, ${meta.created.slice(0, 10)}, deeptail ${meta.version} on ${meta.device}`;
  document.querySelector('h1').textContent = 'Two runs side by side';
  document.querySelector('.brand-what').textContent = 'comparison of two runs';
  document.getElementById('facts').innerHTML = [told('A', run), told('B', other)]
    .map(f => `<span>${escapeHtml(f)}</span>`)
    .join('');
  document.title = `deeptail: ${run.meta.suite} and ${other.meta.suite}`;
}
function comparisonView(data) {
  run = prepare({ ...data.a, differences: data.differences });
  Object.assign(run, { onlyA: data.only_a, onlyB: data.only_b });
  other = prepare(data.b);
  return {
    html: comparePageHtml,
    figures: COMPARE_FIGURES,
    drawFacts: drawCompareFacts,
    drawTables() {
      document.getElementById('takeaways').innerHTML = compareTakeaways();
      document.getElementById('compare-methods').innerHTML = compareTable();
      document.getElementById('changes-title').textContent =
        `The ${plural(largestChanges().length, 'estimate')} that differ most of ${thousands(changes().length)}; the file has all`;
      document.getElementById('changes-list').innerHTML = changesTable();
    },
  };
}
