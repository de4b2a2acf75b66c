// Loss by distribution and by model size, under the four profiles.
const LOSS_HOVER = hover([
  ['setting', 'method'],
  ['where', 'on'],
  ['loss', 'loss'],
  ['profile', 'profile'],
]);

// [{method, setting, k, key, point...}] for every profile and every group of pairs.
function lossPoints(groups, losses, domains) {
  return losses.flatMap(k =>
    groups.flatMap(group =>
      pooled(group.where).map(entry => {
        const point = lossPoint(entry.loss[k], domains[k]);
        return {
          ...point,
          method: entry.method,
          setting: label(entry.v),
          group: group.name,
          where: group.name,
          profile: lossTitle(k),
          panel: lossTitle(k),
          loss: point.text,
          complete: entry.complete,
        };
      }),
    ),
  );
}
const LOSS_TITLES = {
  4: 'Squared error, log space',
  5: 'Itakura–Saito',
  6: 'Itakura–Saito, calibrated',
  7: 'Squared error',
};
const lossTitle = k => (k < 4 ? `${profileTitle(k)}: ${profileParameters(k)}` : LOSS_TITLES[k]);
const judgedGroups = groups => groups.filter(g => judgedPairs().some(g.where));
const distGroups = () => judgedGroups(run.dists.map((name, d) => ({ name, where: s => s.d === d })));
const modelGroups = () => judgedGroups(run.models.map(({ name }, m) => ({ name, where: s => s.m === m })));
const domainsOf = groups =>
  LOSSES.map((_, k) =>
    lossDomain([
      ...groups.flatMap(g => pooled(g.where).map(e => e.loss[k].mean)),
      ...(k < 4 ? groups.map(g => meanNoise(judgedPairs().filter(g.where), k)) : []),
    ]),
  );

function winnerTitle(groups, what) {
  const wins = new Map();
  for (const group of groups) {
    const order = byLoss(pooled(group.where), state.profile);
    if (!order.length) continue;
    const entry = wins.get(order[0].v) ?? { v: order[0].v, n: 0, clear: 0 };
    entry.n += 1;
    entry.clear += order.length > 1 && indistinct(order, state.profile, group.where).length === 0;
    wins.set(order[0].v, entry);
  }
  const [first] = [...wins.values()].sort((a, b) => b.n - a.n),
    n = groups.length;
  if (!first) return `Loss by ${what}`;
  const where = first.n < n ? `${first.n} of ${n}` : n === 1 ? 'the only' : n === 2 ? 'both' : `all ${n}`;
  return (
    `${label(first.v)} has the lowest ${run.profiles[state.profile].name} loss on ${where} ${what}${n === 1 ? '' : 's'}, ` +
    (first.clear === first.n ? 'clearly' : first.clear === 0 ? 'nowhere clearly' : `clearly on ${first.clear}`)
  );
}

// Rows are whole numbers, methods small steps around them. Names of rows come from a function: an expression that quotes the
// distribution "if" is one that Vega takes for a signal.
const chosenDist = i => distGroups()[i]?.name ?? '';
function lossPanelSpec(k, values, noise, domain, names, size) {
  const x = {
    field: 'y',
    type: 'quantitative',
    scale: { domain, nice: false, zero: false },
    title: null,
    axis: powerAxis(exponents(...domain, size < 250 ? 4 : 7)),
  };
  const y = {
    field: 'row',
    type: 'quantitative',
    scale: { domain: [names.length - 0.5, -0.5], nice: false, zero: false },
    title: null,
    axis: {
      values: names.map((_, i) => i),
      labelExpr: 'chosenDist(datum.value)',
      labelFontSize: 12,
      labelColor: css('--ink'),
      grid: false,
    },
  };
  const edges = names.map((_, i) => ({ row: i + 0.5 })).slice(0, -1);
  return {
    title: {
      text: profileTitle(k),
      subtitle: wrapped(`${profileParameters(k)}: ${run.profiles[k].emphasis}`, (size + 60) / 6),
    },
    width: size,
    height: names.length * Math.max(24, 5.8 * state.methods.size),
    layer: [
      { data: { values: edges }, mark: { type: 'rule', color: css('--line'), strokeWidth: 1 }, encoding: { y } },
      {
        data: { values: noise },
        mark: { type: 'rule', strokeWidth: 2, color: css('--faint'), opacity: 0.8 },
        encoding: {
          x,
          y: { ...y, field: 'from' },
          y2: { field: 'to' },
          tooltip: hover([
            ['noise', 'noise of the truth'],
            ['group', 'on'],
          ]),
        },
      },
      {
        data: { values },
        mark: { type: 'rule', strokeWidth: 1.4, opacity: 0.55 },
        encoding: { x: { ...x, field: 'low' }, x2: { field: 'high' }, y, color: methodColor() },
      },
      {
        data: { values },
        mark: { type: 'point', filled: true, size: 40, opacity: 1 },
        encoding: { x, y, color: methodColor(), shape: methodShape(), tooltip: LOSS_HOVER },
      },
    ],
  };
}

function lossByDistSpec(width) {
  const groups = distGroups(),
    domains = domainsOf(groups),
    names = groups.map(g => g.name),
    methods = run.methods.filter(m => state.methods.has(m));
  if (!pooled().length) return null;
  const columns = width < 760 ? 1 : 2,
    size = Math.floor((width - columns * 78 - (columns - 1) * 30) / columns);
  const row = v =>
    names.indexOf(v.group) + ((methods.indexOf(v.method) - (methods.length - 1) / 2) * 0.8) / methods.length;
  const values = lossPoints(groups, [0, 1, 2, 3], domains).map(v => ({ ...v, row: row(v) }));
  const noise = k =>
    groups.map((g, i) => {
      const value = meanNoise(judgedPairs().filter(g.where), k);
      return {
        group: g.name,
        from: i - 0.42,
        to: i + 0.42,
        y: within(log10(value), domains[k]),
        noise: plain(value, 2),
      };
    });
  return {
    concat: [0, 1, 2, 3].map(k =>
      lossPanelSpec(
        k,
        values.filter(v => v.panel === lossTitle(k)),
        noise(k),
        domains[k],
        names,
        size,
      ),
    ),
    columns,
    spacing: { row: 34, column: 30 },
    resolve: { scale: { x: 'independent', y: 'independent' } },
  };
}

// Lines over model size; faint points are single distributions.
function modelPanelSpec(k, domain, size, names) {
  const values = modelGroups().flatMap(g =>
    pooled(g.where)
      .filter(e => !Number.isNaN(e.loss[k].mean))
      .map(e => ({
        ...lossPoint(e.loss[k], domain),
        method: e.method,
        setting: label(e.v),
        group: g.name,
        where: g.name,
        profile: lossTitle(k),
        loss: lossPoint(e.loss[k], domain).text,
      })),
  );
  const single = pooled().flatMap(e =>
    e.scores
      .filter(s => isNumber(s.loss[k].mean))
      .map(s => ({
        y: lossPoint(s.loss[k], domain).y,
        loss: lossPoint(s.loss[k], domain).text,
        group: run.models[s.m].name,
        method: e.method,
        setting: label(e.v),
        where: `${run.models[s.m].name}, ${run.dists[s.d]}`,
        profile: lossTitle(k),
      })),
  );
  const infinite = values.filter(v => v.infinite);
  const x = {
    field: 'group',
    type: 'ordinal',
    sort: names,
    title: null,
    axis: { labelAngle: 0, grid: false },
    scale: { type: 'point', padding: 0.35 },
  };
  const y = {
    field: 'y',
    type: 'quantitative',
    scale: {
      domain: [domain[0], domain[1] + (infinite.length ? 0.09 : 0.045) * (domain[1] - domain[0])],
      nice: false,
      zero: false,
    },
    title: null,
    axis: powerAxis(exponents(...domain, 6)),
  };
  const top = domain[1] + 0.045 * (domain[1] - domain[0]);
  if (infinite.length)
    y.axis = {
      values: [...exponents(...domain, 6).filter(e => e < domain[1]), top],
      labelExpr: `datum.value > ${domain[1]} ? '∞' : powerOfTen(datum.value)`,
    };
  const order = state.methods.size,
    reach = Math.min(3 * order, (0.38 * size) / names.length);
  const xOffset = {
    field: 'method',
    type: 'nominal',
    scale: { domain: run.methods.filter(m => state.methods.has(m)), range: [-reach, reach] },
  };
  const layer = [
    {
      data: { values: single },
      mark: { type: 'point', filled: true, size: 9, opacity: 0.4 },
      encoding: { x, y, xOffset, color: methodColor(), tooltip: LOSS_HOVER },
    },
    {
      data: { values: values.filter(v => !v.infinite) },
      mark: { type: 'line', strokeWidth: 1.8 },
      encoding: { x, y, color: methodColor() },
    },
    {
      data: { values: values.filter(v => !v.infinite) },
      mark: { type: 'rule', strokeWidth: 1.4, opacity: 0.6 },
      encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color: methodColor() },
    },
    {
      data: { values: values.filter(v => !v.infinite) },
      mark: { type: 'point', filled: true, size: 54, opacity: 1 },
      encoding: { x, y, color: methodColor(), shape: methodShape(), tooltip: LOSS_HOVER },
    },
  ];
  if (infinite.length)
    layer.push({
      data: { values: infinite.map(v => ({ ...v, y: top })) },
      mark: { type: 'point', filled: true, size: 40, opacity: 1 },
      encoding: { x, y, xOffset, color: methodColor(), shape: methodShape(), tooltip: LOSS_HOVER },
    });
  if (k < 4) {
    const noise = modelGroups().map(g => ({
      group: g.name,
      y: within(log10(meanNoise(judgedPairs().filter(g.where), k)), domain),
    }));
    layer.unshift({
      data: { values: noise },
      mark: { type: 'line', strokeWidth: 1.2, strokeDash: [3, 3], color: css('--faint') },
      encoding: { x, y },
    });
  }
  return {
    title: { text: k < 4 ? profileTitle(k) : LOSS_TITLES[k], subtitle: k < 4 ? profileParameters(k) : ' ' },
    width: size,
    height: 220,
    layer,
  };
}
function lossByModelSpec(width, wanted = [0, 1, 2, 3]) {
  const groups = modelGroups();
  if (!pooled().length) return null;
  // Calibration needs five targets, so it may be missing.
  const losses = wanted.filter(k => groups.some(g => pooled(g.where).some(e => !Number.isNaN(e.loss[k].mean))));
  const domains = LOSSES.map((_, k) =>
    lossDomain([
      ...pooled().flatMap(e => e.scores.map(s => s.loss[k].mean)),
      ...groups.flatMap(g => pooled(g.where).map(e => e.loss[k].mean)),
    ]),
  );
  const columns = width < 420 ? 1 : width < 900 ? 2 : losses.length,
    size = Math.floor((width - columns * 38 - (columns - 1) * 16) / columns) - 4;
  return {
    concat: losses.map(k =>
      modelPanelSpec(
        k,
        domains[k],
        size,
        groups.map(g => g.name),
      ),
    ),
    columns,
    spacing: { row: 30, column: 14 },
    resolve: { scale: { x: 'independent', y: 'independent' } },
  };
}
