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
    best = byLoss(entries, state.profile)[0];
  if (!best) return 'Error against cost';
  const amount = state.costUnit === 'forwards' ? `${plain(10 ** best.cost, 2)} forward passes` : seconds(best.seconds);
  const buys = betterBuys(entries, best, state.profile);
  return (
    `${best.name} has the lowest loss, at ${amount} per target; ` +
    (buys.length
      ? `for less, ${listed(buys)} ${buys.length === 1 ? 'is' : 'are'} the better buy`
      : 'no other method does better for less')
  );
}
// Every setting of the chosen methods.
const allShown = () => run.variants.map((_, v) => v).filter(v => state.methods.has(run.variants[v].method));

// Labels of neighbours, moved apart along y until each has a line of its own.
function apart(points, field, [low, high], height, line = 14) {
  const step = (line * (high - low)) / height,
    sorted = points.map(p => ({ ...p, at: p[field] })).sort((a, b) => a.at - b.at);
  for (let round = 0; round < 40; ++round)
    for (let i = 1; i < sorted.length; ++i) {
      const overlap = step - (sorted[i].at - sorted[i - 1].at);
      if (overlap > 0 && Math.abs(sorted[i].x - sorted[i - 1].x) < 0.5) {
        sorted[i].at += overlap / 2;
        sorted[i - 1].at = Math.max(low, sorted[i - 1].at - overlap / 2);
      }
    }
  return sorted;
}

function costSpec(width) {
  const entries = pooled(() => true, allShown());
  if (!entries.length) return null;
  const k = state.profile,
    noise = meanNoise(chosenPairs(), k),
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
  // One name per method, at its dearest setting, on the side where there is room.
  const named = run.methods
    .filter(m => values.some(v => v.method === m))
    .map(m => values.filter(v => v.method === m).reduce((a, b) => (b.x > a.x ? b : a)));
  const edge = xs[0] + 0.84 * (xs[1] - xs[0]);
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
  const panel = (title, y, extra) => ({
    title,
    width: size,
    height: 300,
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
      ...[
        ['left', 10],
        ['right', -10],
      ].map(([align, dx]) => ({
        data: {
          values: apart(
            named.filter(v => v.x <= edge === dx > 0),
            y.field,
            y.scale.domain,
            300,
          ),
        },
        mark: { type: 'text', align, dx, baseline: 'middle', fontSize: 11.5, fontWeight: 560 },
        encoding: { x, y: { ...y, field: 'at' }, text: { field: 'method' }, color: methodColor() },
      })),
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
