// How unequal activations are before whitening, and after.
const shownWhitening = () =>
  run.whitening.profiles.filter(
    w => state.models.has(run.models.findIndex(m => m.name === w.model)) && state.dists.has(run.dists.indexOf(w.dist)),
  );
const whyNoWhitening = () =>
  run.whitening.profiles.length ? null : `Left out: ${run.whitening.why_none || 'the run has no activations'}.`;
const spread = values => values[0] / values.at(-1);

function whiteningTitle() {
  const all = shownWhitening(),
    middle = list => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
  if (!all.length) return 'Whitening';
  return `Before whitening the widest direction varies ${fold(middle(all.map(w => spread(w.before))))} as much as the narrowest; after it, ${fold(middle(all.map(w => spread(w.after))))}`;
}

function quartiles(curves) {
  return curves[0].map((_, j) => {
    const at = curves.map(c => c[j]).sort((a, b) => a - b),
      q = f => {
        const i = f * (at.length - 1),
          k = Math.floor(i);
        return at[k] + (i - k) * ((at[k + 1] ?? at[k]) - at[k]);
      };
    return { rank: j + 1, low: log10(q(0.25)), y: log10(q(0.5)), high: log10(q(0.75)) };
  });
}
function whiteningSpec(width) {
  const models = [...new Set(shownWhitening().map(w => w.model))];
  if (!models.length) return null;
  const values = models.flatMap(model =>
    ['before', 'after'].flatMap(stage =>
      quartiles(
        shownWhitening()
          .filter(w => w.model === model)
          .map(w => w[stage]),
      ).map(v => ({ ...v, model, stage, value: plain(10 ** v.y) })),
    ),
  );
  const domain = [Math.floor(Math.min(...values.map(v => v.low))), Math.ceil(Math.max(...values.map(v => v.high)))];
  const { columns, size, gap } = panels(width, models.length, { least: 220, most: 3, axes: 60 });
  const x = {
    field: 'rank',
    type: 'quantitative',
    title: 'direction, by variance',
    axis: { grid: false, tickCount: 5 },
    scale: { nice: false },
  };
  const y = {
    field: 'y',
    type: 'quantitative',
    title: 'marginal variance',
    scale: { domain, nice: false, zero: false },
    axis: powerAxis(exponents(...domain, 6)),
  };
  const color = {
    field: 'stage',
    type: 'nominal',
    sort: ['before', 'after'],
    scale: { domain: ['before', 'after'], range: [css('--faint'), css('--accent')] },
    legend: { orient: 'top', direction: 'horizontal', symbolOpacity: 1, symbolType: 'stroke' },
  };
  return {
    data: { values },
    facet: { field: 'model', type: 'nominal', sort: models, header: { title: null } },
    columns,
    spacing: { row: 24, column: gap },
    spec: {
      width: size,
      height: 220,
      layer: [
        {
          mark: { type: 'area', opacity: 0.2 },
          encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color },
        },
        {
          mark: { type: 'line', strokeWidth: 2 },
          encoding: {
            x,
            y,
            color,
            tooltip: hover([
              ['stage', 'whitening'],
              ['rank', 'direction'],
              ['value', 'median variance'],
            ]),
          },
        },
      ],
    },
    resolve: { axis: { x: 'independent' } },
  };
}
