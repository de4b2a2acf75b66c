// The estimates of two runs against each other.
function compareTitle() {
  const finite = changes().filter(c => Number.isFinite(c.change));
  if (!finite.length) return 'Estimate of A against estimate of B';
  return `Half of the estimates differ by at most ${times(10 ** median(finite.map(c => Math.abs(c.change))))} between the runs`;
}
function compareSpec(width) {
  const all = changes();
  if (!all.length) return null;
  const logs = all.flatMap(c => [c.row.p, c.twin.p]).filter(isNumber),
    anyZero = all.some(c => c.row.p === null || c.twin.p === null);
  const least = logs.length ? Math.floor(Math.min(...logs)) : -2,
    most = Math.max(least + 1, logs.length ? Math.ceil(Math.max(...logs)) : 0),
    zeroAt = least - 0.75,
    domain = [anyZero ? least - 1.2 : least, most];
  const values = all.map(({ row, twin, change }) => ({
    x: row.p ?? zeroAt,
    y: twin.p ?? zeroAt,
    method: row.method,
    panel: label(row.v),
    where: `${row.model}, ${row.dist}`,
    target: `${visible(row.text)}  (id ${row.ids.join(', ')})`,
    truth: truthText(row),
    first: `${probability(row.p)}  (${probability(row.lo)} to ${probability(row.hi)})`,
    second: `${probability(twin.p)}  (${probability(twin.lo)} to ${probability(twin.hi)})`,
    change: changeText(change),
  }));
  const names = [...new Set(values.map(v => v.panel))],
    fit = panels(width, names.length, width < 500 ? { least: 110, axes: 54, gap: 14 } : { least: 190, axes: 66 }),
    { columns, gap } = fit,
    size = Math.min(340, fit.size);
  const ticks = exponents(least, most, size < 170 ? 3 : 6);
  const axis = (field, title) => ({
    field,
    type: 'quantitative',
    title,
    scale: { domain, nice: false, zero: false },
    axis: {
      values: anyZero ? [zeroAt, ...ticks] : ticks,
      labelExpr: anyZero ? `datum.value < ${least - 0.5} ? '0' : powerOfTen(datum.value)` : 'powerOfTen(datum.value)',
    },
  });
  const x = axis('x', 'estimate of A'),
    y = axis('y', 'estimate of B');
  return {
    data: { values },
    facet: { field: 'panel', type: 'nominal', sort: shownVariants().map(label), header: { title: null } },
    columns,
    spacing: { row: 26, column: gap },
    spec: {
      width: size,
      height: size,
      layer: [
        {
          data: { values: [{ a: least }, { a: most }] },
          mark: { type: 'line', color: css('--ink'), opacity: 0.6, strokeWidth: 1 },
          encoding: { x: { ...x, field: 'a' }, y: { ...y, field: 'a' } },
        },
        {
          mark: { type: 'point', filled: true, size: 28, opacity: 0.75 },
          encoding: {
            x,
            y,
            color: methodColor(),
            shape: methodShape(),
            tooltip: hover([
              ['panel', 'method'],
              ['where', 'on'],
              ['target', 'target'],
              ['truth', 'truth'],
              ['first', 'A'],
              ['second', 'B'],
              ['change', 'change'],
            ]),
          },
        },
      ],
    },
    resolve: { axis: { x: 'independent' } },
  };
}
