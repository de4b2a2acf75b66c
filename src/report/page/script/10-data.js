// The run: decoded once, never changed. Aggregates come from the program; the page only pools them over what is chosen.
let run;

// Names become keys of objects, here and inside Vega: one that every object has (__proto__, constructor) gets an invisible end.
const safeName = name => (name in {} ? `${name}\u200b` : name);
const plainName = name => name.replaceAll('\u200b', '');

async function decodeData() {
  const text = document.getElementById('data').textContent.trim();
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

const LOSSES = [
  'benchmarking',
  'oversight',
  'stress',
  'audit',
  'log_squared',
  'itakura_saito',
  'itakura_saito_calibrated',
  'squared',
];
const lossValue = v => (v === 'inf' ? Infinity : v === null ? NaN : v);

function prepare(run) {
  for (const v of run.variants) {
    v.method = safeName(v.method);
    v.name = safeName(v.name).replace(/2\^(\d+)/g, (_, e) => `2${superscript(Number(e))}`);
  }
  for (const m of run.models) m.name = safeName(m.name);
  run.dists = run.dists.map(safeName);
  run.statuses = run.statuses.map(safeName);
  run.methods = [...new Set(run.variants.map(v => v.method))];
  for (const score of run.scores)
    score.loss = score.loss.map(([mean, error]) => ({ mean: lossValue(mean), error: lossValue(error) }));
  run.compared = new Map();
  for (const row of run.differences ?? []) {
    const key = `${row[2]},${row[3]}`;
    run.compared.set(key, [
      ...(run.compared.get(key) ?? []),
      { m: row[0], d: row[1], targets: row[4], ends: row.slice(5) },
    ]);
  }
  const c = run.items;
  run.rows = c.t.map((t, i) => {
    const [m, d, ids, text, count, samples] = run.targets[t];
    const variant = run.variants[c.v[i]],
      known = samples > 0 && count > 0 && count < samples;
    return {
      id: i,
      m,
      d,
      v: c.v[i],
      t,
      model: run.models[m].name,
      dist: run.dists[d],
      method: variant.method,
      variant: variant.name,
      ids,
      text,
      count,
      samples,
      q: known ? Math.log10(count / samples) : null, // null: cannot be scored
      p: c.p[i],
      lo: c.lo[i],
      hi: c.hi[i],
      side: c.in[i],
      cost: c.c[i],
      seconds: c.s[i],
      status: run.statuses[c.st[i]],
      replica: c.r[i],
      warnings: c.w[i].map(w => run.warnings[w]),
    };
  });
  run.details?.items.forEach((i, k) => (run.rows[i].detail = run.details.values[k]));
  return run;
}

const profileTitle = k => `${run.profiles[k].name[0].toUpperCase()}${run.profiles[k].name.slice(1)}`;
const profileParameters = k => `α = ${run.profiles[k].alpha}, γ = ${run.profiles[k].gamma}`;

// One setting over several pairs: counts add, losses average over the pairs that have truths, as in the paper. `pairs` and
// `judged`: how many pairs are chosen, and how many of them have truths.
function pool(scores, pairs, judged) {
  const total = (list, f) => list.reduce((sum, s) => sum + f(s), 0),
    sum = f => total(scores, f),
    scoredPairs = scores.filter(s => s.scored > 0);
  const n = sum(s => s.n),
    scored = sum(s => s.scored),
    ratios = sum(s => s.ratios),
    widths = sum(s => s.widths);
  return {
    n,
    scored,
    targets: sum(s => s.targets),
    scoredTargets: sum(s => s.scored_targets),
    pairs: scoredPairs.length,
    complete: scoredPairs.length === judged && judged > 0,
    everywhere: scores.length === pairs,
    zeros: sum(s => s.zeros) / n,
    within2: sum(s => s.within2) / scored,
    inside: sum(s => s.inside) / scored,
    low: sum(s => s.low) / scored,
    high: sum(s => s.high) / scored,
    behind: ratios / scored, // the share of estimates that bias and rms are of
    bias: ratios ? sum(s => s.bias * s.ratios) / ratios : NaN,
    rms: ratios ? Math.sqrt(sum(s => s.square * s.ratios) / ratios) : NaN,
    bounded: widths / n, // the share of intervals that have a lower end
    width: widths ? sum(s => s.width * s.widths) / widths : NaN,
    cost: sum(s => s.cost * s.n) / n,
    seconds: sum(s => s.seconds * s.n) / n,
    loss: LOSSES.map((_, k) => ({
      mean: total(scoredPairs, s => s.loss[k].mean) / scoredPairs.length,
      error: Math.sqrt(total(scoredPairs, s => s.loss[k].error ** 2)) / scoredPairs.length,
    })),
  };
}
const meanNoise = (pairs, k) => pairs.reduce((total, p) => total + p.noise[k][0], 0) / pairs.length;

// The variants by loss k, best first; what has no number comes last.
const byLoss = (entries, k) =>
  [...entries].filter(e => e.complete && !Number.isNaN(e.loss[k].mean)).sort((a, b) => a.loss[k].mean - b.loss[k].mean);
