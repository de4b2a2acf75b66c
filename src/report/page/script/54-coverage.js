// Do the 95% intervals hold the truth?
function coverageTitle() {
  const entries = pooled().filter(e => e.scored);
  if (!entries.length) return 'Interval coverage';
  const best = [...entries].sort((a, b) => tellsSomething(b) - tellsSomething(a) || b.inside - a.inside)[0],
    worst = entries.reduce((a, b) => (b.inside < a.inside ? b : a));
  const told = e =>
    `of ${label(e.v)} hold the truth for ${percent(e.inside)} of ${plural(e.scored, 'estimate')} (${widthText(e)})`;
  return `The 95% intervals ${told(best)}${worst !== best ? `; those ${told(worst)}` : ''}`;
}

function coverageSpec(width) {
  const entries = pooled().filter(e => e.scored);
  if (!entries.length) return null;
  const names = entries.map(e => label(e.v)),
    narrow = width < 760;
  const parts = entries.flatMap(e =>
    [
      ['in the interval', e.inside, 0],
      ['above it: estimate too low', e.low, 1],
      ['below it: estimate too high', e.high, 2],
    ].map(([part, share, order]) => ({
      name: label(e.v),
      method: e.method,
      part,
      share,
      order,
      shareText: percent(share),
      estimates: thousands(e.scored),
      width: times(10 ** (e.width / 2)),
    })),
  );
  const y = {
    field: 'name',
    type: 'nominal',
    scale: { domain: names },
    title: null,
    axis: { labelFontSize: 12.5, labelColor: css('--ink'), labelFontWeight: 520, labelLimit: narrow ? 110 : 220 },
  };
  const x = {
    field: 'share',
    type: 'quantitative',
    stack: 'zero',
    scale: { domain: [0, 1] },
    title: 'share of targets',
    axis: { format: '.0%', values: narrow ? [0, 0.5, 1] : [0, 0.2, 0.4, 0.6, 0.8, 1] },
  };
  const tip = hover([
    ['name', 'method'],
    ['part', 'truth'],
    ['shareText', 'share'],
    ['estimates', 'estimates'],
    ['width', 'typical half-width'],
  ]);
  const size = narrow ? width - 110 : Math.floor((width - 150) * 0.7);
  const bars = {
    width: size,
    height: { step: 34 },
    layer: [
      {
        data: { values: parts.filter(p => p.order === 0) },
        mark: { type: 'bar', height: { band: 0.58 } },
        encoding: { x, y, color: methodColor(), tooltip: tip },
      },
      {
        data: {
          values: entries.flatMap(e => [
            {
              name: label(e.v),
              a: e.inside,
              b: e.inside + e.low,
              fill: css('--ink'),
              ...tipOf(e, 'above it: estimate too low', e.low),
            },
            {
              name: label(e.v),
              a: e.inside + e.low,
              b: 1,
              fill: css('--line'),
              ...tipOf(e, 'below it: estimate too high', e.high),
            },
          ]),
        },
        mark: { type: 'bar', height: { band: 0.58 } },
        encoding: {
          x: { ...x, field: 'a', stack: null },
          x2: { field: 'b' },
          y,
          color: { field: 'fill', type: 'nominal', scale: null },
          tooltip: tip,
        },
      },
      {
        data: { values: [{ x: 0.95 }] },
        mark: { type: 'rule', color: css('--ink'), strokeWidth: 1.5 },
        encoding: { x: { field: 'x', type: 'quantitative' } },
      },
      {
        data: { values: [{ x: 0.95, t: '95%' }] },
        mark: { type: 'text', y: -8, fontSize: 11, fontWeight: 600, color: css('--ink') },
        encoding: { x: { field: 'x', type: 'quantitative' }, text: { field: 't' } },
      },
      {
        data: { values: parts.filter(p => p.order === 0) },
        mark: {
          type: 'text',
          align: 'left',
          dx: 7,
          fontSize: 11,
          fontWeight: 650,
          color: isDark() ? '#111417' : '#ffffff',
          x: 0,
        },
        encoding: { y, text: { field: 'shareText' } },
        transform: [{ filter: 'datum.share > 0.08' }],
      },
    ],
  };
  const widths = entries.map(e => ({
    name: label(e.v),
    method: e.method,
    w: isNumber(e.width) ? e.width / 2 : null,
    text: times(10 ** (e.width / 2)),
  }));
  const most = Math.max(0.5, ...widths.map(w => w.w ?? 0)),
    wx = {
      field: 'w',
      type: 'quantitative',
      scale: { domain: [0, most * 1.25], nice: false },
      title: 'typical half-width, as a factor',
      axis: {
        values: [0, log10(2), log10(5), 1, 2, 3, 4].filter(v => v <= most * 1.25),
        labelExpr: "'×' + format(pow(10, datum.value), '~r')",
      },
    };
  const wy = narrow ? y : { ...y, axis: null };
  const half = {
    width: narrow ? size : width - size - 150,
    height: { step: 34 },
    data: { values: widths },
    layer: [
      {
        mark: { type: 'text', align: 'left', x: 4, fontSize: 11, color: css('--faint') },
        encoding: { y: wy, text: { value: 'no lower ends' } },
        transform: [{ filter: 'datum.w === null' }],
      },
      {
        mark: { type: 'rule', strokeWidth: 2, opacity: 0.6 },
        encoding: { x: { ...wx, field: 'zero' }, x2: { field: 'w' }, y: wy, color: methodColor() },
        transform: [{ filter: 'datum.w !== null' }, { calculate: '0', as: 'zero' }],
      },
      {
        mark: { type: 'point', filled: true, size: 70, opacity: 1 },
        encoding: { x: wx, y: wy, color: methodColor(), shape: methodShape() },
        transform: [{ filter: 'datum.w !== null' }],
      },
      {
        mark: { type: 'text', align: 'left', dx: 9, fontSize: 11 },
        encoding: { x: wx, y: wy, text: { field: 'text' } },
        transform: [{ filter: 'datum.w !== null' }],
      },
    ],
  };
  return {
    concat: [bars, half],
    columns: narrow ? 1 : 2,
    spacing: 34,
    resolve: { scale: { x: 'independent', y: 'independent', color: 'independent' } },
  };
}
const tipOf = (e, part, share) => ({
  part,
  shareText: percent(share),
  estimates: thousands(e.scored),
  width: times(10 ** (e.width / 2)),
});
const coverageKey = () =>
  `<span class="key"><i style="background:linear-gradient(90deg,${[...state.methods].slice(0, 3).map(colorOf).join(',') || 'none'})"></i>truth in the interval</span>` +
  '<span class="key"><i style="background:var(--ink)"></i>above it: estimate too low</span><span class="key"><i style="background:var(--line)"></i>below it: estimate too high</span>';
