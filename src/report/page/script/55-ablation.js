// Settings of one method side by side.
const severalSettings = () =>
  run.methods.filter(m => state.methods.has(m) && run.variants.filter(v => v.method === m).length > 1);
const ablationVariants = () =>
  run.variants.map((_, v) => v).filter(v => severalSettings().includes(run.variants[v].method));

// Without the method's name, where only one has several settings.
const settingName = e => (severalSettings().length === 1 ? e.name.replace(`${e.method}/`, '') : e.name);

function ablationTitle() {
  const best = byLoss(
      pooled(() => true, ablationVariants()),
      state.profile,
    ),
    method = best[0]?.method;
  const mine = best.filter(e => e.method === method);
  if (mine.length < 2) return 'Settings compared';
  const clear = beats(mine[0].v, mine[1].v, state.profile),
    worst = fold(mine.at(-1).loss[state.profile].mean / mine[0].loss[state.profile].mean);
  return `${settingName(mine[0])} has the lowest loss of ${mine.length} settings of ${method}${clear ? '' : ', though not clearly'}; the highest is ${worst} that`;
}
const whyNoAblation = () =>
  severalSettings().length
    ? null
    : 'Left out: every chosen method ran with one setting, so there is nothing to compare. suites/ablation.toml has kernels, priors and steps.';

function ablationSpec(width) {
  const entries = pooled(() => true, ablationVariants()).filter(e => e.scored);
  if (!entries.length) return null;
  const order = [...new Set([...byLoss(entries, state.profile), ...entries].map(settingName))];
  const columns = width < 560 ? 1 : 4,
    labels = Math.min(width < 560 ? 150 : 230, 8 * Math.max(...order.map(n => n.length)) + 8),
    size = Math.floor((width - labels - 30 - (columns - 1) * 28) / columns);
  const panel = (k, i) => {
    const domain = lossDomain(entries.flatMap(e => [e.loss[k].mean, e.loss[k].mean + 1.28 * (e.loss[k].error || 0)]));
    const values = entries.map(e => ({
      ...lossPoint(e.loss[k], domain, 1.28),
      name: settingName(e),
      setting: e.name,
      method: e.method,
      profile: lossTitle(k),
      loss: lossPoint(e.loss[k], domain).text,
      zero: domain[0],
    }));
    const y = {
      field: 'name',
      type: 'nominal',
      sort: order,
      title: null,
      axis: i % columns === 0 ? { labelLimit: labels, labelFontSize: 11.5 } : { labels: false },
    };
    const x = {
      field: 'y',
      type: 'quantitative',
      scale: { domain, nice: false, zero: false },
      title: null,
      axis: powerAxis(exponents(...domain, 4)),
    };
    return {
      title: { text: profileTitle(k), subtitle: profileParameters(k) },
      width: size,
      height: { step: 19 },
      data: { values },
      layer: [
        {
          mark: { type: 'bar', height: { band: 0.62 }, opacity: 0.32 },
          encoding: {
            x: { ...x, field: 'zero' },
            x2: { field: 'y' },
            y,
            color: methodColor(),
            tooltip: LOSS_HOVER.filter(f => f.field !== 'where'),
          },
        },
        {
          mark: { type: 'rule', strokeWidth: 1.6 },
          encoding: { x: { ...x, field: 'low' }, x2: { field: 'high' }, y, color: methodColor() },
        },
        { mark: { type: 'tick', thickness: 2.5, size: 12 }, encoding: { x, y, color: methodColor() } },
      ],
    };
  };
  return {
    concat: [0, 1, 2, 3].map(panel),
    columns,
    spacing: { row: 26, column: 28 },
    resolve: { scale: { x: 'independent', y: 'independent' } },
  };
}
