// The loss itself, on made-up errors.
const SERIES = {
  light: ['#1b1f24', '#3b6ea5', '#8a5a9e', '#b0772a', '#4c8a68', '#a14a4a', '#8b949e'],
  dark: ['#e8eaed', '#7fb0e6', '#c79bdb', '#dba65c', '#86c7a3', '#e08a8a', '#78818b'],
};

function experimentSpec(experiment, width) {
  const colors = SERIES[isDark() ? 'dark' : 'light'],
    columns = Math.min(experiment.panels.length, width < 430 ? 1 : 2);
  const size = Math.floor((width - columns * 62 - (columns - 1) * 12) / columns);
  const place = (v, log) => (log ? (isNumber(v) && v > 0 ? log10(v) : null) : v);
  const panel = p => {
    const values = p.series
      .flatMap(s =>
        s.x.map((x, i) => ({
          x: place(x, p.x.log),
          y: place(lossValue(s.y[i]), p.y.log),
          label: greek(s.label),
          at: `${p.x.log ? scientific(x) : plain(x)}`,
          value: plain(lossValue(s.y[i])),
        })),
      )
      .filter(v => isNumber(v.x) && isNumber(v.y));
    const axis = (field, a) => {
      const all = values.map(v => v[field]).concat(field === 'y' ? p.guides.map(g => place(g.y, a.log)) : []),
        low = Math.min(...all),
        high = Math.max(...all);
      const domain = a.log
        ? [Math.floor(low + 1e-6), Math.max(Math.ceil(high - 1e-6), Math.floor(low + 1e-6) + 1)]
        : undefined;
      return {
        field,
        type: 'quantitative',
        title: greek(a.label),
        scale: { domain, nice: !a.log, zero: false },
        axis: a.log ? powerAxis(exponents(...domain, 5)) : { tickCount: 5 },
      };
    };
    const x = axis('x', p.x),
      y = axis('y', p.y);
    const layer = [
      {
        mark: { type: 'line', strokeWidth: 1.8 },
        encoding: {
          x,
          y,
          color: {
            field: 'label',
            type: 'nominal',
            sort: null,
            scale: { domain: p.series.map(s => greek(s.label)), range: p.series.map(s => colors[s.color % 7]) },
            legend: { orient: 'bottom', columns: size < 300 ? 1 : 2, labelLimit: size - 10 },
          },
          strokeDash: {
            field: 'label',
            type: 'nominal',
            scale: {
              domain: p.series.map(s => greek(s.label)),
              range: p.series.map(s => (s.dashed ? [4, 3] : [1, 0])),
            },
          },
          tooltip: hover([
            ['label', 'curve'],
            ['at', p.x.label],
            ['value', p.y.label],
          ]),
        },
      },
    ];
    for (const guide of p.guides)
      layer.push(
        {
          data: { values: [{ y: place(guide.y, p.y.log) }] },
          mark: { type: 'rule', strokeDash: [2, 3], color: css('--faint') },
          encoding: { y },
        },
        {
          data: { values: [{ y: place(guide.y, p.y.log), t: greek(guide.label) }] },
          mark: { type: 'text', align: 'right', x: 'width', dy: 9, color: css('--faint') },
          encoding: { y, text: { field: 't' } },
        },
      );
    return {
      title: { text: greek(p.title), fontSize: 11.5, fontWeight: 500, color: css('--soft') },
      width: size,
      height: 170,
      data: { values },
      layer,
    };
  };
  return {
    concat: experiment.panels.map(panel),
    columns,
    spacing: { row: 20, column: 12 },
    resolve: {
      scale: { color: 'independent', x: 'independent', y: 'independent', strokeDash: 'independent' },
      legend: { color: 'independent' },
    },
  };
}
