// The scoreboard and the paper's tables.
function takeaways() {
  const entries = pooled(),
    k = state.profile,
    order = byLoss(entries, k),
    out = [];
  if (!order.length)
    return '<div><strong>Nothing is chosen</strong><p>Choose at least one method, model and distribution.</p></div>';
  const best = order[0],
    noise = meanNoise(chosenPairs(), k),
    second = order[1];
  out.push([
    `Trust ${label(best.v)} most`,
    `Its ${run.profiles[k].name} loss is ${plain(best.loss[k].mean)}` +
      (second ? `, against ${plain(second.loss[k].mean)} of ${label(second.v)}, the next` : '') +
      `. Exact answers would get ${plain(noise, 2)}, since the truth is itself a count.`,
  ]);
  const sure = [...entries].sort((a, b) => Math.abs(a.inside - 0.95) - Math.abs(b.inside - 0.95))[0];
  out.push([
    `${label(sure.v)} knows how sure it is`,
    `Its 95% intervals hold the truth for ${percent(sure.inside)} of targets, with a typical half-width of ${times(10 ** (sure.width / 2))}.`,
  ]);
  const cheap = entries.reduce((a, b) => (b.cost < a.cost ? b : a)),
    bestCost = plain(10 ** best.cost, 2);
  out.push([
    cheap === best ? `${label(best.v)} is also the cheapest` : `${label(cheap.v)} needs the fewest forward passes`,
    cheap === best
      ? `${bestCost} forward passes (${seconds(best.seconds)}) per target.`
      : `${plain(10 ** cheap.cost, 2)} per target (${seconds(cheap.seconds)}), and is off by ${times(10 ** cheap.rms)}; ${label(best.v)} takes ${bestCost} (${seconds(best.seconds)}) and is off by ${times(10 ** best.rms)}.`,
  ]);
  const turn = inversion();
  out.push(
    turn
      ? [
          'Which is better depends on the question',
          `${turn.ahead} beats ${turn.behind} when errors both ways cost the same (benchmarking), and loses to it under ${turn.profile}, where underestimates cost more.`,
        ]
      : ['The order does not depend on the question', 'Even-handed and cautious losses rank the methods alike.'],
  );
  return out
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
