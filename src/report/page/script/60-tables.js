// The scoreboard and the paper's tables.
const biasText = e =>
  isNumber(e.bias)
    ? Math.abs(e.bias) < 0.02
      ? 'none'
      : `${times(10 ** Math.abs(e.bias))} too ${e.bias > 0 ? 'high' : 'low'}`
    : '–';
// [title, HTML of an entry, value for a file]; what needs a truth is left out where there is none.
const share = (value, part) => `${value}${part > 0 && part < 1 ? ` <small>of ${percent(part)}</small>` : ''}`;
const SCORE_COLUMNS = [
  ['Typical error, as a factor', e => share(times(10 ** e.rms), e.behind), e => 10 ** e.rms, true],
  ['Bias', biasText, e => 10 ** e.bias, true],
  ['Within a factor of 2', e => percent(e.within2), e => e.within2, true],
  ['Zeros', e => percent(e.zeros), e => e.zeros],
  ['95% interval holds the truth', e => percent(e.inside), e => e.inside, true],
  [
    'Interval’s typical half-width',
    e => (e.bounded ? share(times(10 ** (e.width / 2)), e.bounded) : 'no lower ends'),
    e => 10 ** (e.width / 2),
  ],
  ['Forward passes per target', e => plain(10 ** e.cost, 2), e => 10 ** e.cost],
  ['Time per target', e => seconds(e.seconds), e => e.seconds],
];
function rankedEntries() {
  const entries = pooled(),
    ranked = byLoss(entries, state.profile);
  return [...ranked, ...entries.filter(e => !ranked.includes(e))];
}
const shownScoreColumns = entries => SCORE_COLUMNS.filter(([, , , judged]) => !judged || entries.some(e => e.scored));

function lossCell(e, best, low, span) {
  const { mean, error } = e.loss[state.profile];
  if (Number.isNaN(mean)) return '<td class="left">–</td>';
  const length = (0.4 + (4 * (log10(mean) - low)) / span).toFixed(2);
  return (
    `<td class="left"><span class="bar" style="width:${length}rem;background:${colorOf(e.method)}"></span><span class="${e === best ? 'best' : ''}">${tableLoss(mean)}</span>` +
    `${isNumber(error) ? ` <small>± ${plain(error, 2)}</small>` : ''}${e.complete ? '' : ` <small title="not on all chosen pairs">† ${e.pairs} of ${judgedPairs().length} pairs</small>`}</td>`
  );
}
function scoreboard() {
  const k = state.profile,
    entries = rankedEntries(),
    judged = entries.some(e => e.scored),
    columns = shownScoreColumns(entries);
  const best = byLoss(entries, k)[0],
    logs = entries.map(e => log10(e.loss[k].mean)).filter(Number.isFinite),
    low = Math.min(...logs),
    span = Math.max(0.5, Math.max(...logs) - low);
  const row = e =>
    `<tr><th scope="row">${swatch(e.method, label(e.v))}</th>${judged ? lossCell(e, best, low, span) : ''}` +
    `${columns.map(([, html]) => `<td>${html(e)}</td>`).join('')}</tr>`;
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Scoreboard"><table class="wide" id="scoreboard-table"><thead><tr><th scope="col">Method</th>` +
    `${judged ? `<th scope="col" class="left">${escapeHtml(profileTitle(k))} loss <small>(bars: log scale)</small></th>` : ''}` +
    `${columns.map(([title]) => `<th scope="col" class="multi">${title}</th>`).join('')}</tr></thead><tbody>${entries.map(row).join('')}</tbody></table></div>${downloadButton('scoreboard')}`
  );
}
DOWNLOADS.scoreboard = () => {
  const entries = rankedEntries(),
    columns = shownScoreColumns(entries),
    name = run.profiles[state.profile].name;
  return [
    ['method', 'estimates', 'scored', `${name} loss`, 'standard error', ...columns.map(([title]) => title)],
    ...entries.map(e => [
      label(e.v),
      e.n,
      e.scored,
      e.loss[state.profile].mean,
      e.loss[state.profile].error,
      ...columns.map(([, , value]) => value(e)),
    ]),
  ];
};

function lossTable(m, k, variants) {
  const pairs = judgedPairs().filter(p => p.m === m);
  const value = (p, v) => run.scores.find(s => s.v === v && s.m === m && s.d === p.d)?.loss[k].mean ?? NaN;
  const line = (name, values, noise, average) => {
    const least = Math.min(...values.filter(v => !Number.isNaN(v)));
    return `<tr class="${average ? 'average' : ''}"><th scope="row">${average ? name : `<code>${escapeHtml(name)}</code>`}</th>${values.map(v => `<td class="${v === least ? 'best' : ''}">${tableLoss(v)}</td>`).join('')}<td class="noise">${tableLoss(noise)}</td></tr>`;
  };
  const rows = pairs.map(p => variants.map(v => value(p, v)));
  const means = variants.map((_, c) => rows.reduce((total, r) => total + r[c], 0) / rows.length);
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(run.models[m].name)}"><table class="loss-table"><caption>${escapeHtml(run.models[m].name)}${run.models[m].layers ? `, ${plural(run.models[m].layers, 'layer')}` : ''}</caption>` +
    `<thead><tr><th scope="col">Dist.</th>${variants.map(v => `<th scope="col">${swatch(run.variants[v].method, label(v))}</th>`).join('')}<th scope="col" class="noise">noise</th></tr></thead>` +
    `<tbody>${pairs.map((p, i) => line(run.dists[p.d], rows[i], p.noise[k][0], false)).join('')}${line('Avg.', means, meanNoise(pairs, k), true)}</tbody></table></div>`
  );
}
function lossTables(k) {
  const variants = shownVariants(),
    models = judgedModels();
  if (!variants.length || !models.length) return '<p class="why">Nothing is chosen that has a truth.</p>';
  return `<div class="tables">${models.map(m => lossTable(m, k, variants)).join('')}</div>${downloadButton('losses')}`;
}
const judgedModels = () => run.models.map((_, m) => m).filter(m => judgedPairs().some(p => p.m === m));
DOWNLOADS.losses = () => [
  ['model', 'dist', ...shownVariants().map(label), 'noise'],
  ...judgedPairs().map(p => [
    run.models[p.m].name,
    run.dists[p.d],
    ...shownVariants().map(
      v => run.scores.find(s => s.v === v && s.m === p.m && s.d === p.d)?.loss[state.spbProfile].mean ?? NaN,
    ),
    p.noise[state.spbProfile][0],
  ]),
];
