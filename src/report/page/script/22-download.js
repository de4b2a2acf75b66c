// Tables as files.

// A spreadsheet takes text that begins like this for a formula.
const FORMULA = /^[=+\-@\t\r]/;
function csvField(value) {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  const text = plainName(String(value ?? '')),
    safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
const csvText = rows => rows.map(row => row.map(csvField).join(',')).join('\r\n') + '\r\n';

function saveText(name, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const downloadButton = what => `<button type="button" class="quiet" data-download="${what}">Download as CSV</button>`;
// The tables that can be saved, by the name that their button has.
const DOWNLOADS = Object.create(null);
function setupDownloads() {
  document.getElementById('main').addEventListener('click', ({ target }) => {
    const what = target.dataset.download;
    if (what in DOWNLOADS) saveText(`${what}.csv`, csvText(DOWNLOADS[what]()));
  });
}
