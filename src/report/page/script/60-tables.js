// The scoreboard and the paper's tables.

// Four sentences for a reader in a hurry: [head, text] each.
function bestTakeaway(order, k) {
  const [best, second] = order,
    { mean, error } = best.loss[k],
    noise = plain(meanNoise(chosenPairs(), k), 2);
  const exact = `Exact answers would get ${noise}, since the truth is itself a count.`;
  if (!second)
    return [`${label(best.v)} alone is shown`, `Its ${run.profiles[k].name} loss is ${plain(mean)}. ${exact}`];
  // Two standard errors of the difference, were the two independent.
  const clear = second.loss[k].mean - mean > 2 * Math.hypot(error || 0, second.loss[k].error || 0);
  return [
    clear ? `Trust ${label(best.v)} most` : `${label(best.v)} leads, but not clearly`,
    `Its ${run.profiles[k].name} loss is ${plain(mean)}, against ${plain(second.loss[k].mean)} of ${label(second.v)}, the next` +
      `${clear ? '' : ': within the noise of these targets'}. ${exact}`,
  ];
}
// The method whose intervals hold the truth as often as they say; among several the one with the narrowest.
function sureTakeaway(entries) {
  const miss = e => Math.abs(e.inside - 0.95),
    honest = entries.filter(e => miss(e) <= 0.1 && isNumber(e.width)).sort((a, b) => a.width - b.width)[0],
    shown = honest ?? [...entries].sort((a, b) => miss(a) - miss(b))[0],
    half = 10 ** (shown.width / 2);
  const head = !honest
    ? 'No interval can be taken at its word'
    : half > 5
      ? `The intervals of ${label(shown.v)} are safe, but wide`
      : `${label(shown.v)} knows how sure it is`;
  return [
    head,
    `${honest ? 'Its 95% intervals' : `Those of ${label(shown.v)} come closest: they`} hold the truth for ${percent(shown.inside)} of targets` +
      `${isNumber(half) ? `, with a typical half-width of ${times(half)}` : ''}.`,
  ];
}
// The cheapest that does not mostly answer zero.
function costTakeaway(entries, best) {
  const cheap = [best, ...entries.filter(e => e.zeros < 0.5)].reduce((a, b) => (b.cost < a.cost ? b : a)),
    cost = e => `${plain(10 ** e.cost, 2)} per target (${seconds(e.seconds)})`,
    off = e => (isNumber(e.rms) ? `is off by ${times(10 ** e.rms)}` : 'only ever answers zero');
  if (cheap === best) return [`${label(best.v)} needs the fewest forward passes`, `${cost(best)}; it ${off(best)}.`];
  return [
    `${label(cheap.v)} needs the fewest forward passes`,
    `${cost(cheap)}, and ${off(cheap)}; ${label(best.v)} takes ${cost(best)} and ${off(best)}.`,
  ];
}
function questionTakeaway() {
  const turn = inversion();
  if (!turn)
    return ['The order does not depend on the question', 'Even-handed and cautious profiles rank the methods alike.'];
  return [
    'Which is better depends on the question',
    `${turn.ahead} beats ${turn.behind} when errors both ways cost the same (benchmarking), and loses to it under ${turn.profile}, where underestimates cost more.`,
  ];
}
function takeaways() {
  const entries = pooled(),
    order = byLoss(entries, state.profile);
  const told = order.length
    ? [
        bestTakeaway(order, state.profile),
        sureTakeaway(entries),
        costTakeaway(entries, order[0]),
        ...(order.length > 1 ? [questionTakeaway()] : []),
      ]
    : [['Nothing is chosen', 'Choose at least one method, model and distribution.']];
  return told
    .map(([head, text]) => `<div><strong>${escapeHtml(head)}</strong><p>${escapeHtml(text)}</p></div>`)
    .join('');
}

const biasText = e =>
  isNumber(e.bias)
    ? Math.abs(e.bias) < 0.02
      ? 'none'
      : `${times(10 ** Math.abs(e.bias))} too ${e.bias > 0 ? 'high' : 'low'}`
    : '–';
function scoreboard() {
  const k = state.profile,
    entries = pooled();
  const ranked = [...byLoss(entries, k), ...entries.filter(e => !e.complete || Number.isNaN(e.loss[k].mean))];
  const best = byLoss(entries, k)[0],
    logs = ranked.map(e => log10(e.loss[k].mean)).filter(Number.isFinite),
    low = Math.min(...logs),
    span = Math.max(0.5, Math.max(...logs) - low);
  const row = e =>
    `<tr><th scope="row">${swatch(e.method, label(e.v))}</th>` +
    `<td class="left"><span class="bar" style="width:${(0.4 + (4 * (log10(e.loss[k].mean) - low)) / span).toFixed(2)}rem;background:${colorOf(e.method)}"></span><span class="${e === best ? 'best' : ''}">${tableLoss(e.loss[k].mean)}</span>` +
    `${isNumber(e.loss[k].error) ? ` <small>± ${plain(e.loss[k].error, 2)}</small>` : ''}${e.complete ? '' : ` <small title="not on all chosen pairs">† ${e.pairs} of ${chosenPairs().length} pairs</small>`}</td>` +
    `<td>${times(10 ** e.rms)}</td><td>${biasText(e)}</td><td>${percent(e.within2)}</td><td>${percent(e.zeros)}</td><td>${percent(e.inside)}</td><td>${plain(10 ** e.cost, 2)}</td><td>${seconds(e.seconds)}</td></tr>`;
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Scoreboard"><table class="wide" id="scoreboard-table"><thead><tr><th scope="col">Method</th><th scope="col" class="left">${escapeHtml(profileTitle(k))} loss</th>` +
    [
      'Typical error, as a factor',
      'Bias',
      'Within a factor of 2',
      'Zeros',
      '95% interval holds the truth',
      'Forward passes per target',
      'Time per target',
    ]
      .map(t => `<th scope="col" class="multi">${t}</th>`)
      .join('') +
    `</tr></thead><tbody>${ranked.map(row).join('')}</tbody></table></div>`
  );
}

function lossTable(m, k, variants) {
  const pairs = chosenPairs().filter(p => p.m === m);
  const value = (p, v) => run.scores.find(s => s.v === v && s.m === m && s.d === p.d)?.loss[k].mean ?? NaN;
  const line = (name, values, noise, average) => {
    const least = Math.min(...values.filter(v => !Number.isNaN(v)));
    return `<tr class="${average ? 'average' : ''}"><th scope="row">${average ? name : `<code>${escapeHtml(name)}</code>`}</th>${values.map(v => `<td class="${v === least ? 'best' : ''}">${tableLoss(v)}</td>`).join('')}<td class="noise">${tableLoss(noise)}</td></tr>`;
  };
  const rows = pairs.map(p => variants.map(v => value(p, v)));
  const means = variants.map((_, c) => rows.reduce((total, r) => total + r[c], 0) / rows.length);
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(run.models[m].name)}"><table class="loss-table"><caption>${escapeHtml(run.models[m].name)}${run.models[m].layers ? `, ${plural(run.models[m].layers, 'layer')}` : ''}</caption>` +
    `<thead><tr><th scope="col">Dist.</th>${variants.map(v => `<th scope="col">${swatch(run.variants[v].method, label(v))}</th>`).join('')}<th scope="col" class="noise">noise</th></tr></thead>` +
    `<tbody>${pairs.map((p, i) => line(run.dists[p.d], rows[i], p.noise[k][0], false)).join('')}${line('Avg.', means, meanNoise(pairs, k), true)}</tbody></table></div>`
  );
}
function lossTables(k) {
  const variants = shownVariants(),
    models = run.models.map((_, m) => m).filter(m => chosenPairs().some(p => p.m === m));
  if (!variants.length || !models.length) return '<p class="why">Nothing is chosen.</p>';
  return `<div class="tables">${models.map(m => lossTable(m, k, variants)).join('')}</div>`;
}
