// Numbers for people: 8.9 × 10⁻⁷, not 8.9e-7.
const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';
const superscript = n => (n < 0 ? '⁻' : '') + [...String(Math.abs(n))].map(c => SUPERSCRIPTS[c]).join('');
const isNumber = v => typeof v === 'number' && Number.isFinite(v);

// Axis labels: the value is the exponent.
function powerOfTen(exponent) {
  if (!Number.isInteger(exponent)) return '';
  if (exponent >= -2 && exponent <= 3) return String(Number((10 ** exponent).toPrecision(1)));
  return `10${superscript(exponent)}`;
}

function scientific(value, digits = 2) {
  if (!isNumber(value)) return '–';
  if (value === 0) return '0';
  const [mantissa, exponent] = value.toExponential(digits - 1).split('e');
  return `${mantissa} × 10${superscript(Number(exponent))}`;
}
const probability = log10 => (log10 === null ? '0' : scientific(10 ** log10, 3));

// Losses, costs: plain where that is short.
function plain(value, digits = 3) {
  if (value === Infinity) return '∞';
  if (!isNumber(value)) return '–';
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 99999.5)) return scientific(value, 2);
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1000 ? thousands(Math.round(rounded)) : String(rounded);
}
// As in the paper: two decimals, so that columns line up.
function tableLoss(value) {
  if (value === Infinity) return '∞';
  if (!isNumber(value)) return '–';
  if (value >= 9999.995 || (value < 0.00095 && value > 0)) return scientific(value, 3);
  return value >= 0.095 ? value.toFixed(2) : value.toPrecision(2);
}
const thousands = n => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
const percent = share => (isNumber(share) ? `${share > 0.995 && share < 1 ? '>99' : Math.round(100 * share)}%` : '–');
const times = factor => (isNumber(factor) ? `×${factor < 9.95 ? factor.toFixed(1) : plain(factor, 2)}` : '–');
function seconds(value) {
  if (!isNumber(value)) return '–';
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  return value < 90 ? `${Number(value.toPrecision(2))} s` : `${Number((value / 60).toPrecision(2))} min`;
}
const fold = factor => `${factor < 9.95 ? factor.toFixed(1) : plain(factor, 2)} times`;
const plural = (n, word) => `${thousands(n)} ${word}${n === 1 ? '' : 's'}`;
const listed = names => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`);

const HTML_ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escapeHtml = text => String(text).replace(/[&<>"]/g, c => HTML_ESCAPES[c]);
const greek = text =>
  text
    .replace(/\balpha\b/g, 'α')
    .replace(/\bepsilon\b/g, 'ε')
    .replace(/\beta\b/g, 'η')
    .replace(/(\d(?:\.\d+)?)e([+-]?\d+)/g, (_, m, e) => (m === '1' ? '' : `${m} × `) + `10${superscript(Number(e))}`);
// Tokens begin with spaces and hold line ends: shown so that they can be told apart.
const visible = text => text.replace(/\n/g, '⏎').replace(/\t/g, '⇥').replace(/^ | $/g, '␣');
