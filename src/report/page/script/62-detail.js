// What lies behind one estimate: warnings, triggers, levels, and the command that repeats it.
function levelSparkline(levels) {
  const logs = [0];
  for (const share of levels) logs.push(logs.at(-1) + log10(Math.max(1e-12, share ?? 1)));
  const width = 220,
    height = 46,
    low = Math.min(-0.1, logs.at(-1));
  const points = logs.map(
    (v, i) => `${((width * i) / levels.length).toFixed(1)},${(3 + ((height - 6) * v) / low).toFixed(1)}`,
  );
  return `<svg class="spark" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Probability after each of ${levels.length} levels, down to ${escapeHtml(probability(logs.at(-1)))}"><polyline points="${points.join(' ')}"/></svg><small>from 1 down to ${probability(logs.at(-1))}</small>`;
}
function levelsHtml(detail) {
  if (!detail.survive.length) return '';
  const rows = detail.survive
    .map(
      (s, i) =>
        `<tr><td>${i + 1}</td><td>${plain(s, 2)}</td><td>${isNumber(detail.accept[i]) ? percent(detail.accept[i]) : '–'}</td></tr>`,
    )
    .join('');
  const more = detail.n_levels > detail.survive.length ? `, the first ${detail.survive.length} of them here` : '';
  return (
    `<div><h3>${plural(detail.n_levels, 'level')}${more}</h3>${levelSparkline(detail.survive)}` +
    `<details><summary>Survivors and accepted moves</summary><table><thead><tr><th scope="col">Level</th><th scope="col">Survive</th><th scope="col">Accepted</th></tr></thead><tbody>${rows}</tbody></table></details></div>`
  );
}
function triggersHtml(detail) {
  if (!detail.triggers.length) return '';
  const more =
    detail.n_triggers > detail.triggers.length ? ` (${detail.triggers.length} of ${thousands(detail.n_triggers)})` : '';
  return `<div><h3>Inputs that trigger it${more}</h3><ul class="triggers">${detail.triggers.map(t => `<li><code>${escapeHtml(visible(t))}</code></li>`).join('')}</ul></div>`;
}
const commandHtml = detail =>
  detail.command
    ? `<div class="command"><h3>Repeat it</h3><div><code>${escapeHtml(detail.command)}</code> <button type="button" class="quiet" data-copy>Copy</button></div></div>`
    : '';

// The same warning several times is told once, with its number.
const counted = texts => {
  const numbers = new Map();
  for (const text of texts) numbers.set(text, (numbers.get(text) ?? 0) + 1);
  return [...numbers].sort((a, b) => b[1] - a[1]);
};
const warningsHtml = texts =>
  `<ul class="warnings">${counted(texts)
    .map(([text, n]) => `<li>${n > 1 ? `<b>${thousands(n)} ×</b> ` : ''}${escapeHtml(text)}</li>`)
    .join('')}</ul>`;

function detailHtml(row) {
  const parts = [row.warnings.length ? `<div><h3>Warnings</h3>${warningsHtml(row.warnings)}</div>` : ''];
  if (row.detail) parts.push(triggersHtml(row.detail), levelsHtml(row.detail), commandHtml(row.detail));
  else if (run.details.known > run.details.items.length)
    parts.push(
      `<p class="why">Triggers, levels and commands of ${thousands(run.details.items.length)} of ${plural(run.details.known, 'estimate')} fit into this page; those of the others are in the run folder.</p>`,
    );
  return parts.join('') || '<p class="why">The run folder tells no more about this estimate.</p>';
}

async function copyCommand(button) {
  const code = button.parentElement.querySelector('code');
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(code); // the reader's own copying still works
    button.textContent = 'Selected';
  }
  setTimeout(() => (button.textContent = 'Copy'), 1500);
}
