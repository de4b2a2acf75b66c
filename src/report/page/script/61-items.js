// Every estimate in one sortable table; points of the figures lead to their rows.
const ITEM_COLUMNS = [
  ['method', 'Method', r => moreButton(r) + swatch(r.method, label(r.v)), r => run.variants[r.v].name, 'left'],
  ['model', 'Model', r => escapeHtml(r.model), r => r.m, 'left'],
  ['dist', 'Dist.', r => escapeHtml(r.dist), r => r.d, 'left'],
  [
    'target',
    'Target',
    r => `<code>${escapeHtml(visible(r.text))}</code> <small>${r.ids.join(', ')}</small>`,
    r => r.text,
    'left',
  ],
  ['truth', 'Truth', r => (r.q === null ? escapeHtml(truthText(r)) : probability(r.q)), r => r.q ?? 1e9],
  ['estimate', 'Estimate', r => probability(r.p), r => r.p ?? -1e9],
  [
    'ratio',
    'Ratio',
    r => (r.q === null ? '–' : r.p === null ? '0' : plain(10 ** (r.p - r.q), 2)),
    r => (r.q === null ? 1e9 : r.p === null ? -1e9 : r.p - r.q),
  ],
  ['interval', '95% interval', r => `${probability(r.lo)} to ${probability(r.hi)}`, r => r.hi ?? -1e9],
  [
    'holds',
    'Holds it',
    r => (r.q === null ? '–' : r.side === 0 ? 'yes' : r.side > 0 ? 'no, too low' : 'no, too high'),
    r => r.side ?? 9,
  ],
  ['cost', 'Passes', r => plain(r.cost, 2), r => r.cost],
  ['seconds', 'Time', r => seconds(r.seconds), r => r.seconds],
  [
    'status',
    'Status',
    r => escapeHtml(statusText(r.status) + (r.warnings.length ? ` · ${plural(r.warnings.length, 'warning')}` : '')),
    r => r.status,
    'left',
  ],
];
const STATUS_TEXTS = new Map([
  ['not_reached_upper_bound', 'upper bound'],
  ['budget_spent', 'budget spent'],
]);
const statusText = status => STATUS_TEXTS.get(status) ?? status.replace(/_/g, ' ');
const PAGE_ROWS = 25;
const listing = { sort: 'truth', up: true, page: 0, here: null, open: new Set() };
const moreButton = r =>
  `<button type="button" class="more" data-more="${r.id}" aria-expanded="${listing.open.has(r.id)}" aria-label="More about this estimate"></button>`;
const detailRow = r =>
  listing.open.has(r.id)
    ? `<tr class="detail"><td colspan="${shownItemColumns().length}"><div class="detail-box">${detailHtml(r)}</div></td></tr>`
    : '';
// Without any truth there is nothing to say about it.
const JUDGED_COLUMNS = ['ratio', 'holds'];
const shownItemColumns = () => ITEM_COLUMNS.filter(([key]) => run.meta.scored > 0 || !JUDGED_COLUMNS.includes(key));

function sortedItems() {
  const key = ITEM_COLUMNS.find(c => c[0] === listing.sort)[3],
    sign = listing.up ? 1 : -1;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return shownRows().sort((a, b) => sign * compare(key(a), key(b)) || a.id - b.id);
}

function itemsTable() {
  const rows = sortedItems(),
    pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  if (listing.here !== null) {
    const at = rows.findIndex(r => r.id === listing.here);
    if (at >= 0) listing.page = Math.floor(at / PAGE_ROWS);
  }
  listing.page = Math.min(listing.page, pages - 1);
  const shown = rows.slice(listing.page * PAGE_ROWS, (listing.page + 1) * PAGE_ROWS);
  const columns = shownItemColumns();
  const head = columns
    .map(
      ([key, title, , , side]) =>
        `<th scope="col" class="${side ?? ''}" aria-sort="${listing.sort === key ? (listing.up ? 'ascending' : 'descending') : 'none'}"><button type="button" data-sort="${key}">${title}</button></th>`,
    )
    .join('');
  const body = shown
    .map(
      r =>
        `<tr id="item-${r.id}" tabindex="-1" class="${r.id === listing.here ? 'here' : ''}">${columns.map(([, , html, , side]) => `<td class="${side ?? ''}">${html(r)}</td>`).join('')}</tr>${detailRow(r)}`,
    )
    .join('');
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Estimates"><table class="wide" id="items-table"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
    `<div class="pager"><button type="button" class="quiet" data-page="-1" ${listing.page === 0 ? 'disabled' : ''}>Previous</button><span>${rows.length ? thousands(listing.page * PAGE_ROWS + 1) : 0} to ${thousands(listing.page * PAGE_ROWS + shown.length)} of ${plural(rows.length, 'estimate')}</span>` +
    `<button type="button" class="quiet" data-page="1" ${listing.page === pages - 1 ? 'disabled' : ''}>Next</button>${downloadButton('estimates')}</div>${allWarnings(rows)}`
  );
}
function allWarnings(rows) {
  const texts = rows.flatMap(r => r.warnings);
  if (!texts.length) return '';
  return `<details class="all-warnings" ${listing.warned ? 'open' : ''}><summary>${plural(texts.length, 'warning')} of ${plural(rows.filter(r => r.warnings.length).length, 'estimate')}</summary>${warningsHtml(texts)}</details>`;
}
const power = log => (log === null ? 0 : 10 ** log);
DOWNLOADS.estimates = () => [
  'method,setting,model,dist,target,text,replica,truth,truth count,truth samples,estimate,low,high,holds truth,forward passes,seconds,status,warnings'.split(
    ',',
  ),
  ...sortedItems().map(r => [
    r.method,
    r.variant,
    r.model,
    r.dist,
    r.ids.join(' '),
    r.text,
    r.replica,
    r.q === null ? '' : power(r.q),
    r.samples ? r.count : '',
    r.samples || '',
    power(r.p),
    power(r.lo),
    power(r.hi),
    r.q === null ? '' : r.side === 0 ? 'yes' : r.side > 0 ? 'too low' : 'too high',
    r.cost,
    r.seconds,
    r.status,
    r.warnings.join('; '),
  ]),
];
function drawItems() {
  document.getElementById('items').innerHTML = itemsTable();
}

function goToItem(id) {
  listing.here = id;
  listing.open.add(id);
  drawItems();
  const row = document.getElementById(`item-${id}`);
  if (!row) return;
  writeAddress(id);
  row.scrollIntoView({ block: 'center' });
  row.focus({ preventScroll: true });
}
function setupItems() {
  const box = document.getElementById('items');
  box.addEventListener('click', event => {
    const sort = event.target.closest('[data-sort]')?.dataset.sort,
      page = event.target.closest('[data-page]')?.dataset.page,
      more = event.target.closest('[data-more]')?.dataset.more,
      copy = event.target.closest('[data-copy]');
    if (copy) return copyCommand(copy);
    if (more) {
      const id = Number(more);
      if (!listing.open.delete(id)) listing.open.add(id);
      drawItems();
      return box.querySelector(`[data-more="${id}"]`)?.focus();
    }
    if (sort) Object.assign(listing, { up: listing.sort === sort ? !listing.up : true, sort, page: 0, here: null });
    else if (page) Object.assign(listing, { page: listing.page + Number(page), here: null });
    else return;
    drawItems();
    box.querySelector(sort ? `[data-sort="${sort}"]` : `[data-page="${page}"]`)?.focus();
  });
  box.addEventListener(
    'toggle',
    event => {
      if (event.target.matches('.all-warnings')) listing.warned = event.target.open;
    },
    true,
  );
}
