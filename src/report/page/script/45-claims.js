// What the data say about two settings: a sentence that prefers one needs more than a lower mean.

// With fewer targets not even the same outcome on all of them would be a 5% event.
const FEWEST_TARGETS = 6;

// Loss of a minus loss of b over the judged pairs that `where` keeps, with a 95% interval: the program's paired bootstrap of each
// pair, whose half-widths add as squares. null where the two were not compared on all of these pairs, or on too few targets.
function difference(a, b, k, where = () => true) {
  const pairs = judgedPairs().filter(where),
    found = (run.compared.get(a <= b ? `${a},${b}` : `${b},${a}`) ?? []).filter(c => chosenPair(c) && where(c));
  const targets = found.reduce((sum, c) => sum + c.targets, 0);
  if (!pairs.length || found.length < pairs.length || targets < FEWEST_TARGETS) return null;
  const ends = found.map(c => c.ends.slice(3 * k, 3 * k + 3)),
    n = ends.length;
  const mean = ends.reduce((sum, e) => sum + e[0], 0) / n,
    below = Math.hypot(...ends.map(e => e[0] - e[1])) / n,
    above = Math.hypot(...ends.map(e => e[2] - e[0])) / n;
  return a <= b
    ? { mean, low: mean - below, high: mean + above, targets }
    : { mean: -mean, low: -mean - above, high: -mean + below, targets };
}
const beats = (a, b, k, where) => (difference(a, b, k, where)?.high ?? 0) < 0;

// Of entries in the order of their losses, those that the first does not beat.
const indistinct = ([first, ...others], k, where) => others.filter(e => !beats(first.v, e.v, k, where));

// Intervals that say something: most have a lower end, and they reach less than a factor of ten each way.
const WIDEST_HALF = 1;
const tellsSomething = e => e.bounded >= 0.5 && e.width / 2 <= WIDEST_HALF;
const widthText = e =>
  e.bounded === 0
    ? 'none has a lower end'
    : `typical half-width ${times(10 ** (e.width / 2))}${e.bounded < 1 ? `, ${percent(1 - e.bounded)} without lower end` : ''}`;

// How far off, with the share of estimates that this is of.
function errorText(e) {
  if (!isNumber(e.rms)) return 'only ever answers zero';
  return `is typically off by ${times(10 ** e.rms)}${e.behind < 1 ? ` on the ${percent(e.behind)} of estimates that are not zero` : ''}`;
}
