// Estimate against truth.
const ITEM_HOVER = hover([
  ['setting', 'method'],
  ['where', 'on'],
  ['target', 'target'],
  ['truth', 'truth'],
  ['estimate', 'estimate'],
  ['interval', '95% interval'],
  ['spent', 'cost'],
  ['state', 'status'],
]);

function itemPoint(row, { least, most, zeroAt }) {
  const zero = row.p === null,
    beyond = zero ? 0 : row.p > most ? 1 : row.p < least ? -1 : 0;
  return {
    id: row.id,
    x: row.q,
    y: zero ? zeroAt : beyond ? (beyond > 0 ? most - ARROW_INSET : least + ARROW_INSET) : row.p,
    zero,
    beyond,
    low: row.lo === null ? zeroAt : Math.max(row.lo, least),
    high: row.hi,
    method: row.method,
    panel: state.scatter === 'method' ? label(row.v) : `${row.model} · ${row.dist}`,
    setting: label(row.v),
    where: `${row.model}, ${row.dist}`,
    target: `${visible(row.text)}  (id ${row.ids.join(', ')})`,
    truth: truthText(row),
    estimate: probability(row.p),
    interval: `${probability(row.lo)} to ${probability(row.hi)}`,
    spent: `${plain(row.cost)} forward passes, ${seconds(row.seconds)}`,
    state: row.warnings.length ? `${statusText(row.status)}; ${row.warnings.join('; ')}` : statusText(row.status),
  };
}
function truthText(row) {
  if (row.q !== null) return `${probability(row.q)}  (${plural(row.count, 'count')})`;
  return row.samples ? `counted ${row.count ? 'always' : 'never'} in ${scientific(row.samples)}` : 'not known';
}
// Arrows stand a little inside the axis, in decades.
const ARROW_INSET = 0.14,
  ARROWS = { 1: 'M0-1.3L.9-.1H.32V1.3H-.32V-.1H-.9Z', '-1': 'M0 1.3L.9 .1H.32V-1.3H-.32V.1H-.9Z' };

// Both axes in decades of one length, so that the line of exact answers rises by 45 degrees. The estimates' axis reaches a decade
// beyond the truths' at most; what lies farther becomes an arrow.
function scatterFrame(rows) {
  const xs = [Math.floor(Math.min(...rows.map(r => r.q))), Math.ceil(Math.max(...rows.map(r => r.q)) - 0.02)];
  while (xs[1] - xs[0] < 2) xs[xs[1] < 0 ? 1 : 0] += xs[1] < 0 ? 1 : -1;
  const ps = rows.filter(r => r.p !== null).map(r => r.p);
  const least = Math.max(Math.floor(Math.min(xs[0], ...ps)), xs[0] - 1),
    most = Math.min(Math.ceil(Math.max(xs[1], ...ps)), xs[1] + 1, 0),
    anyZero = rows.some(r => r.p === null || r.lo === null);
  return {
    xs,
    least,
    most,
    anyZero,
    zeroAt: anyZero ? least - 0.75 : least,
    ys: [anyZero ? least - 1.2 : least, most],
  };
}

function scatterTitle() {
  const entries = pooled().filter(e => e.scored);
  if (!entries.length) return 'Nothing is chosen';
  const best = entries.reduce((a, b) => (b.within2 > a.within2 ? b : a));
  const zeros = entries.filter(e => e.zeros >= 0.15).map(e => label(e.v));
  return (
    `${label(best.v)} puts ${percent(best.within2)} of its ${plural(best.scored, 'estimate')} within a factor of two of the truth` +
    (zeros.length ? `; ${listed(zeros)} often ${zeros.length === 1 ? 'answers' : 'answer'} zero` : '')
  );
}

function scatterSpec(width) {
  const rows = scoredRows();
  if (!rows.length) return null;
  const frame = scatterFrame(rows),
    { xs, ys, least, most, anyZero, zeroAt } = frame;
  const values = rows.map(row => itemPoint(row, frame)),
    panelNames = [...new Set(values.map(v => v.panel))];
  const order =
    state.scatter === 'method'
      ? shownVariants().map(label)
      : run.models.flatMap(m => run.dists.map(d => `${m.name} · ${d}`)).filter(name => panelNames.includes(name));
  const shape = (ys[1] - ys[0]) / (xs[1] - xs[0]),
    tallest = 400,
    narrow = Math.min(190, Math.floor(tallest / shape)),
    fit = panels(
      width,
      panelNames.length,
      width < 500 ? { least: 110, axes: 54, gap: 14 } : { least: Math.max(150, narrow), most: 6, axes: 66 },
    ),
    { columns, gap } = fit,
    size = Math.min(fit.size, Math.round(tallest / shape));
  const x = {
    field: 'x',
    type: 'quantitative',
    scale: { domain: xs, nice: false },
    title: 'truth',
    axis: powerAxis(exponents(...xs, size < 170 ? 2 : 5)),
  };
  const yTicks = exponents(least, most, 7);
  const y = {
    field: 'y',
    type: 'quantitative',
    scale: { domain: ys, nice: false, zero: false },
    title: 'estimate',
    axis: {
      values: anyZero ? [zeroAt, ...yTicks] : yTicks,
      labelExpr: anyZero ? `datum.value < ${least - 0.5} ? '0' : powerOfTen(datum.value)` : 'powerOfTen(datum.value)',
    },
  };
  const crowd = values.length / panelNames.length,
    [faint, dot, bar] =
      crowd > 800 ? [0.22, 9, 0.05] : crowd > 150 ? [isDark() ? 0.6 : 0.45, 16, 0.12] : [0.8, 26, 0.3];
  const ends = [{ a: xs[0] }, { a: xs[1] }];
  const layer = [
    {
      data: { values: ends },
      mark: { type: 'area', color: css('--faint'), opacity: 0.13, clip: true },
      encoding: { x: { ...x, field: 'a' }, y: { ...y, field: 'up' }, y2: { field: 'down' } },
      transform: [
        { calculate: `datum.a + ${log10(2)}`, as: 'up' },
        { calculate: `datum.a - ${log10(2)}`, as: 'down' },
      ],
    },
  ];
  if (anyZero)
    layer.unshift({
      data: { values: [{ a: ys[0], b: least - 0.3 }] },
      mark: { type: 'rect', color: css('--wash') },
      encoding: { y: { ...y, field: 'a' }, y2: { field: 'b' } },
    });
  layer.push(
    {
      mark: { type: 'rule', strokeWidth: 1, clip: true, opacity: bar },
      transform: [{ filter: '!datum.zero' }],
      encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color: methodColor() },
    },
    {
      mark: { type: 'point', filled: true, size: dot, opacity: faint, cursor: 'pointer' },
      transform: [{ filter: '!datum.zero && !datum.beyond' }],
      encoding: { x, y, color: methodColor(), shape: methodShape(), tooltip: ITEM_HOVER },
    },
    ...[1, -1].map(side => ({
      mark: {
        type: 'point',
        filled: true,
        shape: ARROWS[side],
        size: 40,
        opacity: Math.max(0.5, faint),
        cursor: 'pointer',
      },
      transform: [{ filter: `datum.beyond === ${side}` }],
      encoding: { x, y, color: methodColor(), tooltip: ITEM_HOVER },
    })),
    {
      mark: {
        type: 'point',
        filled: false,
        shape: 'M-1-1L1 1M-1 1L1-1',
        size: 16,
        strokeWidth: 1.3,
        opacity: faint,
        cursor: 'pointer',
      },
      transform: [{ filter: 'datum.zero' }],
      encoding: { x, y, color: methodColor(), tooltip: ITEM_HOVER },
    },
    {
      data: { values: ends },
      mark: { type: 'line', color: css('--ink'), opacity: 0.7, strokeWidth: 1, clip: true },
      encoding: { x: { ...x, field: 'a' }, y: { ...y, field: 'a' } },
    },
    {
      mark: { type: 'point', filled: false, size: 220, strokeWidth: 2, color: css('--ink') },
      transform: [{ filter: 'datum.id === reached' }],
      encoding: { x, y },
    },
  );
  return {
    params: [{ name: 'reached', value: -1 }],
    data: { values },
    facet: { field: 'panel', type: 'nominal', sort: order, header: { title: null } },
    columns,
    spacing: { row: 26, column: gap },
    spec: { width: size, height: Math.round(size * shape), layer },
    resolve: { axis: { x: 'independent' } },
  };
}

// Points can be stepped through from the keyboard; Enter goes to the row.
function reachPoints(chart, view) {
  const order = scoredRows().sort((a, b) => a.v - b.v || a.q - b.q),
    readout = chart.parentElement.querySelector('.readout');
  let at = -1;
  view.addEventListener('click', (_, item) => {
    if (item?.datum?.id >= 0) goToItem(item.datum.id);
  });
  chart.onkeydown = event => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10 }[event.key];
    if (step && order.length) {
      event.preventDefault();
      at = at < 0 ? 0 : Math.min(order.length - 1, Math.max(0, at + step));
      const row = order[at];
      view.signal('reached', row.id).runAsync();
      readout.textContent =
        `${label(row.v)} on ${row.model}, ${row.dist}: ${visible(row.text)}, truth ${probability(row.q)}, ` +
        `estimate ${probability(row.p)} (${probability(row.lo)} to ${probability(row.hi)}), ${plain(row.cost)} forward passes`;
    } else if (event.key === 'Enter' && at >= 0) goToItem(order[at].id);
  };
}
