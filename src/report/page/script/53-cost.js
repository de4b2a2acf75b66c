// Error against cost: one point per setting, one line per method.
const costOf = e => (state.costUnit === 'forwards' ? e.cost : log10(Math.max(1e-4, e.seconds)));

// Settings that cost clearly less than the best and are not beaten by anything as cheap. What mostly answers zero is no buy.
function betterBuys(entries, best, k) {
  const cheaper = entries.filter(e => costOf(e) < costOf(best) - 0.15 && e.zeros < 0.5);
  const beaten = e => entries.some(o => o !== e && costOf(o) <= costOf(e) && o.loss[k].mean <= e.loss[k].mean);
  return [...new Set(cheaper.filter(e => e.method !== best.method && !beaten(e)).map(e => e.method))];
}
function costTitle() {
  const entries = pooled(() => true, allShown()).filter(e => e.complete),
    order = byLoss(entries, state.profile),
    best = order[0];
  if (!best) return 'Error against cost';
  const amount = state.costUnit === 'forwards' ? `${plain(10 ** best.cost, 2)} forward passes` : seconds(best.seconds);
  const others = order.filter(e => e.method !== best.method),
    doubt = others.length && indistinct([best, ...others], state.profile).length ? ', though not clearly,' : '';
  const buys = betterBuys(entries, best, state.profile);
  return (
    `${best.name} has the lowest loss${doubt} at ${amount} per target` +
    (buys.length
      ? `; of what costs less, ${listed(buys)} ${buys.length === 1 ? 'has' : 'have'} the lowest for the price`
      : '')
  );
}
// Every setting of the chosen methods.
const allShown = () => run.variants.map((_, v) => v).filter(v => state.methods.has(run.variants[v].method));

// Labels beside their points [{x, y, text}] in pixels, to the right or where that ends outside to the left, moved up or down until
// none lies on another. What was moved far has a line to its point.
function placedLabels(points, width, height, line = 14) {
  const room = text => 6.6 * text.length + 12;
  const labels = points
    .map(p => ({ ...p, left: p.x + room(p.text) > width, at: p.y }))
    .sort((a, b) => a.at - b.at || a.x - b.x);
  const span = l => (l.left ? [l.x - room(l.text), l.x] : [l.x, l.x + room(l.text)]);
  const meet = (a, b) => span(a)[0] < span(b)[1] && span(b)[0] < span(a)[1];
  for (let round = 0; round < 60; ++round)
    for (let i = 0; i < labels.length; ++i)
      for (let j = i + 1; j < labels.length; ++j) {
        const overlap = line - (labels[j].at - labels[i].at);
        if (overlap <= 0 || !meet(labels[i], labels[j])) continue;
        labels[i].at = Math.max(6, labels[i].at - overlap / 2);
        labels[j].at = Math.min(height - 6, labels[j].at + overlap / 2);
        labels.sort((a, b) => a.at - b.at);
      }
  return labels.map(l => ({ ...l, lead: Math.abs(l.at - l.y) > 5, tip: l.x + (l.left ? -9 : 9) }));
}

function costSpec(width) {
  const entries = pooled(() => true, allShown()).filter(e => e.scored);
  if (!entries.length) return null;
  const k = state.profile,
    noise = meanNoise(judgedPairs(), k),
    domain = lossDomain([...entries.map(e => e.loss[k].mean), noise]);
  const costs = entries.map(costOf),
    xs = [Math.floor(Math.min(...costs) - 0.1), Math.ceil(Math.max(...costs) + 0.1)];
  const values = entries.map(e => ({
    ...lossPoint(e.loss[k], domain),
    x: costOf(e),
    share: e.within2,
    method: e.method,
    setting: e.name,
    loss: lossPoint(e.loss[k], domain).text,
    spent: `${plain(10 ** e.cost)} forward passes, ${seconds(e.seconds)}`,
    shareText: percent(e.within2),
    off: times(10 ** e.rms),
    zeros: percent(e.zeros),
  }));
  const several = m => values.filter(v => v.method === m).length > 1;
  // One name per method, at its dearest setting.
  const named = run.methods
    .filter(m => values.some(v => v.method === m))
    .map(m => values.filter(v => v.method === m).reduce((a, b) => (b.x > a.x ? b : a)));
  const columns = width < 760 ? 1 : 2,
    size = Math.floor((width - columns * 48 - (columns - 1) * 30) / columns);
  const x = {
    field: 'x',
    type: 'quantitative',
    scale: { domain: xs, nice: false, zero: false },
    title: state.costUnit === 'forwards' ? 'forward passes per target' : 'seconds per target',
    axis: powerAxis(exponents(...xs, 7)),
  };
  const tip = hover([
    ['setting', 'setting'],
    ['spent', 'cost'],
    ['loss', `${run.profiles[k].name} loss`],
    ['shareText', 'within a factor of 2'],
    ['off', 'typical error'],
    ['zeros', 'zeros'],
  ]);
  const height = 300;
  const nameLayers = y => {
    const [low, high] = y.scale.domain;
    const labels = placedLabels(
      named.map(v => ({
        x: (size * (v.x - xs[0])) / (xs[1] - xs[0]),
        y: height * (1 - (v[y.field] - low) / (high - low)),
        text: v.method,
        method: v.method,
      })),
      size,
      height,
    );
    const at = field => ({ field, type: 'quantitative', scale: null });
    return [
      {
        data: { values: labels.filter(l => l.lead) },
        mark: { type: 'rule', strokeWidth: 1, opacity: 0.6 },
        encoding: { x: at('x'), y: at('y'), x2: { field: 'tip' }, y2: { field: 'at' }, color: methodColor() },
      },
      ...[true, false].map(left => ({
        data: { values: labels.filter(l => l.left === left) },
        mark: {
          type: 'text',
          align: left ? 'right' : 'left',
          dx: left ? -1 : 1,
          baseline: 'middle',
          fontSize: 11.5,
          fontWeight: 560,
        },
        encoding: { x: at('tip'), y: at('at'), text: { field: 'text' }, color: methodColor() },
      })),
    ];
  };
  const panel = (title, y, extra) => ({
    title,
    width: size,
    height,
    layer: [
      ...extra,
      {
        data: { values: values.filter(v => several(v.method)) },
        mark: { type: 'line', strokeWidth: 2, opacity: 0.85 },
        encoding: { x, y, color: methodColor(), order: { field: 'x' } },
      },
      ...(y.field === 'y'
        ? [
            {
              data: { values },
              mark: { type: 'rule', strokeWidth: 1.4, opacity: 0.5 },
              encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color: methodColor() },
            },
          ]
        : []),
      {
        data: { values },
        mark: { type: 'point', filled: true, size: 80, opacity: 1 },
        encoding: { x, y, color: methodColor(), shape: methodShape(), tooltip: tip },
      },
      ...nameLayers(y),
    ],
  });
  const lossY = {
    field: 'y',
    type: 'quantitative',
    scale: { domain, nice: false, zero: false },
    title: null,
    axis: powerAxis(exponents(...domain, 6)),
  };
  const shareY = {
    field: 'share',
    type: 'quantitative',
    scale: { domain: [0, 1.04], nice: false },
    title: null,
    axis: { format: '.0%', values: [0, 0.2, 0.4, 0.6, 0.8, 1] },
  };
  return {
    concat: [
      panel({ text: `${profileTitle(k)} loss`, subtitle: 'lower is better' }, lossY, [
        {
          data: { values: [{ y: within(log10(noise), domain) }] },
          mark: { type: 'rule', strokeDash: [3, 3], color: css('--faint') },
          encoding: { y: lossY },
        },
      ]),
      panel({ text: 'Estimates within a factor of two', subtitle: 'higher is better' }, shareY, []),
    ],
    columns,
    spacing: { row: 30, column: 30 },
    resolve: { scale: { y: 'independent' } },
  };
}
