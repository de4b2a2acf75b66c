// Where no truth is known: what each method answers, with its interval.
const MOST_ANSWERS = 40;
const unknownRows = () => shownRows().filter(row => row.q === null);

// Targets without truth, the most likely first.
function unknownTargets() {
  const byTarget = new Map();
  for (const row of unknownRows()) byTarget.set(row.t, [...(byTarget.get(row.t) ?? []), row]);
  const middleOf = values => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
  // Those that nobody reached come last, by their bounds.
  const middle = rows => middleOf(rows.map(r => r.p).filter(isNumber)) ?? middleOf(rows.map(r => r.hi ?? 0)) - 100;
  return [...byTarget.values()].sort((a, b) => middle(b) - middle(a));
}
const answerName = i => {
  const row = unknownTargets()[i]?.[0];
  if (!row) return '';
  const name = `${visible(row.text) || row.ids.join(', ')}`,
    where = run.pairs.length > 1 ? `  ${plainName(row.model)}, ${plainName(row.dist)}` : '';
  return `${name.length > 18 ? `${name.slice(0, 17)}…` : name}${where}`;
};

function answersTitle() {
  const n = unknownTargets().length,
    more = n > MOST_ANSWERS ? `, of which the ${MOST_ANSWERS} most likely are shown` : '';
  return `${plural(n, 'target')} without a known truth${more}: estimates and 95% intervals`;
}

function answersSpec(width) {
  const targets = unknownTargets().slice(0, MOST_ANSWERS);
  if (!targets.length) return null;
  const methods = run.methods.filter(m => state.methods.has(m)),
    step = Math.max(22, 9 * methods.length);
  const known = targets.flat().flatMap(r => [r.p, r.lo, r.hi].filter(isNumber)),
    low = Math.max(Math.floor(Math.min(...known)), -30),
    domain = [low, Math.max(low + 1, Math.min(0, Math.ceil(Math.max(...known))))];
  const values = targets.flatMap((rows, i) =>
    rows.map(row => ({
      ...itemPoint(row, { least: domain[0], most: domain[1], zeroAt: domain[0] }),
      at: within(row.p ?? row.hi ?? domain[0], domain),
      from: within(row.lo ?? domain[0], domain),
      to: within(row.hi ?? domain[1], domain),
      row: i + ((methods.indexOf(row.method) - (methods.length - 1) / 2) * 0.8) / methods.length,
    })),
  );
  const longest = Math.max(...targets.map((_, i) => answerName(i).length)),
    labels = Math.min(width < 560 ? 130 : 230, 7 * longest + 12);
  const x = {
    field: 'at',
    type: 'quantitative',
    scale: { domain, nice: false, zero: false },
    title: 'probability',
    axis: powerAxis(exponents(...domain, width < 560 ? 4 : 9), { orient: 'top' }),
  };
  const y = {
    field: 'row',
    type: 'quantitative',
    scale: { domain: [targets.length - 0.5, -0.5], nice: false, zero: false },
    title: null,
    axis: {
      values: targets.map((_, i) => i),
      labelExpr: 'answerName(datum.value)',
      labelLimit: labels,
      labelColor: css('--ink'),
      grid: false,
    },
  };
  return {
    params: [{ name: 'reached', value: -1 }],
    data: { values },
    width: Math.max(120, width - labels - 24),
    height: step * targets.length,
    layer: [
      {
        data: { values: targets.slice(1).map((_, i) => ({ row: i + 0.5 })) },
        mark: { type: 'rule', color: css('--line') },
        encoding: { y },
      },
      {
        mark: { type: 'rule', strokeWidth: 1.6, opacity: 0.55 },
        encoding: { x: { ...x, field: 'from' }, x2: { field: 'to' }, y, color: methodColor() },
      },
      {
        transform: [{ filter: '!datum.zero' }],
        mark: { type: 'point', filled: true, size: 44, opacity: 1, cursor: 'pointer' },
        encoding: { x, y, color: methodColor(), shape: methodShape(), tooltip: ITEM_HOVER },
      },
      {
        transform: [{ filter: 'datum.zero' }],
        mark: { type: 'point', filled: false, shape: 'M.9-1L-.4 0L.9 1', size: 40, strokeWidth: 2, cursor: 'pointer' },
        encoding: { x, y, color: methodColor(), tooltip: ITEM_HOVER },
      },
    ],
  };
}
