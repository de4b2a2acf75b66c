// What is chosen, and what that leaves.
const state = {
  methods: new Set(),
  models: new Set(),
  dists: new Set(),
  setting: Object.create(null),
  profile: 0,
  scatter: 'method',
  costUnit: 'forwards',
  spbProfile: 0,
};
const headlineOf = method => run.variants.findIndex(v => v.method === method && v.headline);

function resetState() {
  Object.assign(state, { profile: 0, spbProfile: 0, scatter: 'method', costUnit: 'forwards' });
  state.methods = new Set(run.methods);
  state.models = new Set(run.models.map((_, i) => i));
  state.dists = new Set(run.dists.map((_, i) => i));
  for (const method of run.methods) state.setting[method] = headlineOf(method);
}

const chosenPair = ({ m, d }) => state.models.has(m) && state.dists.has(d);
const chosenPairs = () => run.pairs.filter(chosenPair);
// Those with at least one truth: losses are of these.
const judgedPairs = () => chosenPairs().filter(p => p.scored > 0);
// The setting of each chosen method that figures show.
const shownVariants = () => run.methods.filter(m => state.methods.has(m)).map(m => state.setting[m]);
const shownRows = () => {
  const shown = new Set(shownVariants());
  return run.rows.filter(row => shown.has(row.v) && chosenPair(row));
};
const scoredRows = () => shownRows().filter(row => row.q !== null);
const scoresOf = (v, where = () => true) => run.scores.filter(s => s.v === v && chosenPair(s) && where(s));

// Pooled scores of each shown setting, over the pairs that `where` keeps.
function pooled(where = () => true, variants = shownVariants()) {
  const pairs = chosenPairs().filter(where).length,
    judged = judgedPairs().filter(where).length;
  return variants
    .map(v => ({ v, name: run.variants[v].name, method: run.variants[v].method, scores: scoresOf(v, where) }))
    .filter(entry => entry.scores.length > 0)
    .map(entry => ({ ...entry, ...pool(entry.scores, pairs, judged) }));
}
const label = v =>
  run.variants.filter(x => x.method === run.variants[v].method).length > 1
    ? run.variants[v].name
    : run.variants[v].method;
