// The order of the methods by one loss after another, from even-handed to averse to underestimates.
const RANK_ORDER = [4, 0, 5, 1, 2, 3];
const RANK_LABELS = {
  4: ['Squared error,', 'log space'],
  0: ['Benchmarking', 'α 1.5'],
  5: ['Itakura–Saito', ''],
  1: ['Oversight', 'α 2'],
  2: ['Stress', 'α 2, γ 1'],
  3: ['Audit', 'α 4, γ 2'],
};

const RANK_SHORT = ['Sq. log', 'Bench.', 'Itak.–S.', 'Oversight', 'Stress', 'Audit'];
// Two lines where the name is long.
const RANK_AXIS = `indexof(datum.label, ' log space') > 0 ? ['Squared error,', 'log space'] : indexof(datum.label, 'α') > 0 ?
  [slice(datum.label, 0, indexof(datum.label, 'α') - 1), slice(datum.label, indexof(datum.label, 'α'))] : datum.label`;

// Ties, such as infinite losses, share a rank and stand below each other in the order of the first profile.
function ranks(k) {
  const entries = pooled().filter(e => e.complete && !Number.isNaN(e.loss[k].mean)),
    value = e => e.loss[k].mean;
  return entries.map(e => {
    const below = entries.filter(o => value(o) < value(e)).length,
      same = entries.filter(o => value(o) === value(e));
    same.sort((a, b) => a.loss[0].mean - b.loss[0].mean);
    return {
      v: e.v,
      method: e.method,
      rank: below + 1,
      place: below + 1 + same.indexOf(e),
      tied: same.length > 1,
      loss: e.loss[k],
    };
  });
}

// Do all four profiles order the methods alike?
const oneOrder = () => {
  const order = k =>
    byLoss(pooled(), k)
      .map(e => e.v)
      .join();
  return [1, 2, 3].every(k => order(k) === order(0));
};
// The two methods highest in the list that change places, clearly both times, as soon as underestimates begin to weigh more.
function inversion() {
  for (const k of [1, 2, 3]) {
    const found = inversionBetween(ranks(0), ranks(k), k);
    if (found) return { ...found, profile: run.profiles[k].name };
  }
  return null;
}
function inversionBetween(first, later, k) {
  let found = null;
  for (const a of first)
    for (const b of first) {
      const a2 = later.find(r => r.v === a.v),
        b2 = later.find(r => r.v === b.v);
      if (!a2 || !b2 || a.rank >= b.rank || a2.rank <= b2.rank) continue;
      if (!beats(a.v, b.v, 0) || !beats(b.v, a.v, k)) continue;
      const places = a.rank + b2.rank;
      if (!found || places < found.places) found = { ahead: label(a.v), behind: label(b.v), places };
    }
  return found;
}
function metricsTitle() {
  const turn = inversion(),
    [best] = byLoss(pooled(), 0),
    always = best && RANK_ORDER.every(k => ranks(k).find(r => r.v === best.v)?.rank === 1);
  const first = always ? `${label(best.v)} has the lowest loss by every measure` : null;
  const second = turn
    ? `${turn.ahead} beats ${turn.behind} when errors both ways cost the same, and loses to it under ${turn.profile}, where underestimates cost more`
    : null;
  if (first && second) return `${first}; below it, ${second}`;
  return (
    first ??
    second ??
    (oneOrder()
      ? 'The order of the methods is the same for even-handed and for cautious losses'
      : 'The order of the methods changes with the loss, nowhere clearly')
  );
}

// One model: a table says more than lines through one point each.
const METRIC_COLUMNS = [0, 1, 2, 3, 4, 5, 6];
const metricRows = () => [...byLoss(pooled(), state.profile), ...pooled().filter(e => !e.complete && e.scored)];
function metricsTable() {
  const rows = metricRows(),
    columns = METRIC_COLUMNS.filter(k => rows.some(e => !Number.isNaN(e.loss[k].mean)));
  const least = k => Math.min(...rows.filter(e => e.complete).map(e => e.loss[k].mean));
  const cell = (e, k) =>
    `<td class="${e.complete && e.loss[k].mean === least(k) ? 'best' : ''}">${tableLoss(e.loss[k].mean)}${isNumber(e.loss[k].error) ? ` <small>± ${plain(e.loss[k].error, 2)}</small>` : ''}</td>`;
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Losses"><table class="wide" id="metrics-table"><thead><tr><th scope="col">Method</th>${columns.map(k => `<th scope="col" class="multi">${escapeHtml(lossTitle(k))}</th>`).join('')}</tr></thead>` +
    `<tbody>${rows.map(e => `<tr><th scope="row">${swatch(e.method, label(e.v))}</th>${columns.map(k => cell(e, k)).join('')}</tr>`).join('')}</tbody></table></div>${downloadButton('metrics')}`
  );
}
DOWNLOADS.metrics = () => [
  ['method', ...METRIC_COLUMNS.map(k => LOSSES[k])],
  ...metricRows().map(e => [
    label(e.v),
    ...METRIC_COLUMNS.map(k => (e.loss[k].mean === Infinity ? 'inf' : e.loss[k].mean)),
  ]),
];

function rankSpec(width) {
  const names = RANK_ORDER.map(k => RANK_LABELS[k].join(' ')),
    narrow = width < 620,
    shown = narrow ? RANK_SHORT : names;
  const values = RANK_ORDER.flatMap((k, i) =>
    ranks(k).map(r => ({
      ...r,
      metric: shown[i],
      setting: label(r.v),
      text: plain(r.loss.mean),
      rankText: `${r.rank}${r.tied && !narrow ? '=' : ''}`,
      profile: lossTitle(k),
      loss: lossPoint(r.loss, [-300, 300]).text,
      first: i === 0,
      last: i === RANK_ORDER.length - 1,
    })),
  );
  if (!values.length) return null;
  const most = Math.max(...values.map(v => v.place));
  const x = {
    field: 'metric',
    type: 'ordinal',
    sort: shown,
    title: null,
    scale: { type: 'point', padding: 0.15 },
    axis: {
      orient: 'top',
      labelAngle: 0,
      labelFontSize: narrow ? 10 : 11.5,
      grid: false,
      domain: false,
      labelExpr: narrow ? 'datum.label' : RANK_AXIS,
    },
  };
  const y = {
    field: 'place',
    type: 'quantitative',
    scale: { domain: [most + 0.5, 0.35], nice: false, zero: false },
    title: null,
    axis: null,
  };
  const ends = narrow
    ? [
        {
          transform: [{ filter: 'datum.first' }],
          mark: { type: 'text', align: 'left', x: 0, dy: -17, fontSize: 11, fontWeight: 600 },
          encoding: { y, text: { field: 'setting' }, color: methodColor() },
        },
      ]
    : [
        {
          transform: [{ filter: 'datum.first' }],
          mark: { type: 'text', align: 'right', dx: -16, fontSize: 12.5, fontWeight: 560 },
          encoding: { x, y, text: { field: 'setting' }, color: methodColor() },
        },
        {
          transform: [{ filter: 'datum.last' }],
          mark: { type: 'text', align: 'left', dx: 16, fontSize: 12.5, fontWeight: 560 },
          encoding: { x, y, text: { field: 'setting' }, color: methodColor() },
        },
      ];
  return {
    width: width - (narrow ? 20 : 260),
    height: Math.max(150, (narrow ? 52 : 42) * most),
    data: { values },
    ...(narrow ? {} : { padding: { left: 110, right: 110, top: 4, bottom: 4 } }),
    layer: [
      {
        mark: { type: 'line', strokeWidth: 3, interpolate: 'monotone', opacity: 0.9 },
        encoding: { x, y, color: methodColor(), detail: { field: 'setting' } },
      },
      {
        mark: { type: 'point', filled: true, size: narrow ? 160 : 300, opacity: 1 },
        encoding: { x, y, color: methodColor(), tooltip: LOSS_HOVER.filter(f => f.field !== 'where') },
      },
      {
        mark: { type: 'text', fontSize: 10.5, fontWeight: 650, color: css('--card'), baseline: 'middle', dy: 0.5 },
        encoding: { x, y, text: { field: 'rankText' } },
      },
      {
        mark: { type: 'text', fontSize: 10, dy: narrow ? 15 : 19, color: css('--soft') },
        encoding: { x, y, text: { field: 'text' } },
      },
      ...ends,
    ],
  };
}
