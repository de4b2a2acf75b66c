// Axes in powers of ten: values are exponents on a linear scale, so that zeros and infinities can have places of their own.
const log10 = v => Math.log10(v);

function exponents(low, high, most = 9) {
  const step = Math.max(1, Math.ceil((high - low) / most)),
    out = [];
  for (let e = Math.ceil(low); e <= high + 1e-9; e += step) out.push(e);
  return out;
}
const powerAxis = (values, extra = {}) => ({ values, labelExpr: 'powerOfTen(datum.value)', ...extra });

// Where a logged loss is drawn: null off the figure, infinite ones at the far end.
function lossDomain(entries) {
  const finite = entries.filter(v => isNumber(v) && v > 0).map(log10);
  if (!finite.length) return [-1, 1];
  const low = Math.floor(Math.min(...finite) - 0.15),
    high = Math.ceil(Math.max(...finite) + 0.1);
  return [low, Math.max(high, low + 1)];
}
const within = (value, [low, high]) => Math.min(high, Math.max(low, value));
function lossPoint({ mean, error }, domain, z = 1) {
  const spread = isNumber(error) ? z * error : 0;
  return {
    y: within(mean === Infinity ? domain[1] : log10(mean), domain),
    infinite: mean === Infinity,
    low: within(log10(Math.max(1e-300, mean - spread)), domain),
    high: within(mean === Infinity ? domain[1] : log10(mean + spread), domain),
    text: mean === Infinity ? '∞' : `${plain(mean)}${isNumber(error) ? ` ± ${plain(error, 2)}` : ''}`,
  };
}

// How panels share the width: [columns, width of one].
function panels(width, wanted, { least = 190, most = 4, axes = 58, gap = 22 } = {}) {
  const fit = Math.max(1, Math.min(most, wanted, Math.floor((width - axes + gap) / (least + gap))));
  return { columns: fit, size: Math.floor((width - axes - (fit - 1) * gap - 8) / fit), gap };
}
// Lines of at most `most` characters.
function wrapped(text, most) {
  const lines = [''];
  for (const word of text.split(' ')) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push('');
    lines[lines.length - 1] += (lines.at(-1) ? ' ' : '') + word;
  }
  return lines;
}
const hover = fields => fields.map(([field, title]) => ({ field, title, type: 'nominal' }));
