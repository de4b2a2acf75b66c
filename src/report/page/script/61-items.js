// Every estimate in one sortable table; points of the figures lead to their rows.
const ITEM_COLUMNS = [
  ['method', 'Method', r => swatch(r.method, label(r.v)), r => run.variants[r.v].name, 'left'],
  ['model', 'Model', r => escapeHtml(r.model), r => r.m, 'left'],
  ['dist', 'Dist.', r => escapeHtml(r.dist), r => r.d, 'left'],
  [
    'target',
    'Target',
    r => `<code>${escapeHtml(visible(r.text))}</code> <small>${r.ids.join(', ')}</small>`,
    r => r.text,
    'left',
  ],
  ['truth', 'Truth', r => probability(r.q), r => r.q],
  ['estimate', 'Estimate', r => probability(r.p), r => r.p ?? -1e9],
  ['ratio', 'Ratio', r => (r.p === null ? '0' : plain(10 ** (r.p - r.q), 2)), r => (r.p === null ? -1e9 : r.p - r.q)],
  ['interval', '95% interval', r => `${probability(r.lo)} to ${probability(r.hi)}`, r => r.hi ?? -1e9],
  ['holds', 'Holds it', r => (r.side === 0 ? 'yes' : r.side > 0 ? 'no, too low' : 'no, too high'), r => r.side],
  ['cost', 'Passes', r => plain(r.cost, 2), r => r.cost],
  ['seconds', 'Time', r => seconds(r.seconds), r => r.seconds],
  [
    'status',
    'Status',
    r => escapeHtml(statusText(r.status) + (r.warnings.length ? ` · ${r.warnings.join('; ')}` : '')),
    r => r.status,
    'left',
  ],
];
const STATUS_TEXTS = { not_reached_upper_bound: 'upper bound', budget_spent: 'budget spent' };
const statusText = status => STATUS_TEXTS[status] ?? status.replace(/_/g, ' ');
const PAGE_ROWS = 25;
const listing = { sort: 'truth', up: true, page: 0, here: null };

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
  const head = ITEM_COLUMNS.map(
    ([key, title, , , side]) =>
      `<th scope="col" class="${side ?? ''}" aria-sort="${listing.sort === key ? (listing.up ? 'ascending' : 'descending') : 'none'}"><button type="button" data-sort="${key}">${title}</button></th>`,
  ).join('');
  const body = shown
    .map(
      r =>
        `<tr id="item-${r.id}" tabindex="-1" class="${r.id === listing.here ? 'here' : ''}">${ITEM_COLUMNS.map(([, , html, , side]) => `<td class="${side ?? ''}">${html(r)}</td>`).join('')}</tr>`,
    )
    .join('');
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="Estimates"><table class="wide" id="items-table"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>` +
    `<div class="pager"><button type="button" class="quiet" data-page="-1" ${listing.page === 0 ? 'disabled' : ''}>Previous</button><span>${rows.length ? thousands(listing.page * PAGE_ROWS + 1) : 0} to ${thousands(listing.page * PAGE_ROWS + shown.length)} of ${plural(rows.length, 'estimate')}</span>` +
    `<button type="button" class="quiet" data-page="1" ${listing.page === pages - 1 ? 'disabled' : ''}>Next</button></div>`
  );
}
function drawItems() {
  document.getElementById('items').innerHTML = itemsTable();
}

function goToItem(id) {
  listing.here = id;
  drawItems();
  const row = document.getElementById(`item-${id}`);
  if (!row) return;
  history.replaceState(null, '', `#item-${id}`);
  row.scrollIntoView({ block: 'center' });
  row.focus({ preventScroll: true });
}
function setupItems() {
  const box = document.getElementById('items');
  box.addEventListener('click', event => {
    const sort = event.target.closest('[data-sort]')?.dataset.sort,
      page = event.target.closest('[data-page]')?.dataset.page;
    if (sort) Object.assign(listing, { up: listing.sort === sort ? !listing.up : true, sort, page: 0, here: null });
    else if (page) Object.assign(listing, { page: listing.page + Number(page), here: null });
    else return;
    drawItems();
    box.querySelector(sort ? `[data-sort="${sort}"]` : `[data-page="${page}"]`)?.focus();
  });
  const follow = () => {
    const found = /^#item-(\d+)$/.exec(location.hash);
    if (found) goToItem(Number(found[1]));
  };
  addEventListener('hashchange', follow);
  follow();
}
