// The run: decoded once, never changed. Aggregates come from the program; the page only pools them over what is chosen.
let run;

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

function prepare(data) {
  run = data;
  for (const v of run.variants) v.name = v.name.replace(/2\^(\d+)/g, (_, e) => `2${superscript(Number(e))}`);
  run.methods = [...new Set(run.variants.map(v => v.method))];
  for (const score of run.scores)
    score.loss = score.loss.map(([mean, error]) => ({ mean: lossValue(mean), error: lossValue(error) }));
  const c = run.items;
  run.rows = c.t.map((t, i) => {
    const [m, d, ids, text, count, samples] = run.targets[t];
    const variant = run.variants[c.v[i]];
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
      q: Math.log10(count / samples),
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
}

const profileTitle = k => `${run.profiles[k].name[0].toUpperCase()}${run.profiles[k].name.slice(1)}`;
const profileParameters = k => `α = ${run.profiles[k].alpha}, γ = ${run.profiles[k].gamma}`;

// One setting over several pairs: counts add, losses average over pairs as in the paper.
function pool(scores, pairs = scores.length) {
  const sum = f => scores.reduce((total, s) => total + f(s), 0);
  const n = sum(s => s.n),
    positive = n - sum(s => s.zeros),
    widths = sum(s => s.widths);
  return {
    n,
    pairs: scores.length,
    complete: scores.length === pairs && scores.length > 0,
    zeros: sum(s => s.zeros) / n,
    within2: sum(s => s.within2) / n,
    inside: sum(s => s.inside) / n,
    low: sum(s => s.low) / n,
    high: sum(s => s.high) / n,
    bias: positive ? sum(s => s.bias * (s.n - s.zeros)) / positive : NaN,
    rms: positive ? Math.sqrt(sum(s => s.square * (s.n - s.zeros)) / positive) : NaN,
    width: widths ? sum(s => s.width * s.widths) / widths : NaN,
    cost: sum(s => s.cost * s.n) / n,
    seconds: sum(s => s.seconds * s.n) / n,
    loss: LOSSES.map((_, k) => ({
      mean: sum(s => s.loss[k].mean) / scores.length,
      error: Math.sqrt(sum(s => s.loss[k].error ** 2)) / scores.length,
    })),
  };
}
const meanNoise = (pairs, k) => pairs.reduce((total, p) => total + p.noise[k][0], 0) / pairs.length;

// The variants by loss k, best first; what has no number comes last.
const byLoss = (entries, k) =>
  [...entries].filter(e => e.complete && !Number.isNaN(e.loss[k].mean)).sort((a, b) => a.loss[k].mean - b.loss[k].mean);
