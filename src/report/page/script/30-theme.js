// One colour and one shape per method, everywhere; a method names its place here. Okabe and Ito's palette, safe for colour-blind
// readers, with two more.
const METHOD_STYLES = [
  { light: '#c8441b', dark: '#f3804f', shape: 'circle' },
  { light: '#0072b2', dark: '#4aa3e2', shape: 'square' },
  { light: '#e09600', dark: '#f2b63c', shape: 'diamond' },
  { light: '#8c6a2f', dark: '#bf9c62', shape: 'triangle-down' },
  { light: '#c46a9b', dark: '#e39cc4', shape: 'triangle-up' },
  { light: '#009e73', dark: '#35c197', shape: 'cross' },
  { light: '#56b4e9', dark: '#9bd3f5', shape: 'triangle-right' },
  { light: '#6b7280', dark: '#a1a9b4', shape: 'triangle-left' },
];
const SPARE = [
  ['#5b4bb5', '#a99df0'],
  ['#7a9a01', '#b2cf4b'],
  ['#a63d57', '#e5839b'],
  ['#2f4858', '#86a7bb'],
];
const SHAPE_PATHS = {
  circle: 'M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z',
  square: 'M-.9-.9H.9V.9H-.9Z',
  diamond: 'M0-1.2L1 0L0 1.2L-1 0Z',
  'triangle-down': 'M-1-.8H1L0 1Z',
  'triangle-up': 'M-1 .8H1L0-1Z',
  cross: 'M-1-.35H-.35V-1H.35V-.35H1V.35H.35V1H-.35V.35H-1Z',
  'triangle-right': 'M-.8-1V1L1 0Z',
  'triangle-left': 'M.8-1V1L-1 0Z',
};

const isDark = () => document.documentElement.dataset.theme === 'dark';
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const ownStyle = method => METHOD_STYLES[run.variants.find(v => v.method === method)?.colour];
function styleOf(method) {
  if (ownStyle(method)) return ownStyle(method);
  const others = run.methods.filter(m => !ownStyle(m)),
    [light, dark] = SPARE[others.indexOf(method) % SPARE.length];
  return { light, dark, shape: 'circle' };
}
const colorOf = method => styleOf(method)[isDark() ? 'dark' : 'light'];
const glyph = method =>
  `<svg viewBox="-1.2 -1.2 2.4 2.4" aria-hidden="true"><path d="${SHAPE_PATHS[styleOf(method).shape]}" fill="${colorOf(method)}"/></svg>`;
const swatch = (method, text = method) => `<span class="swatch">${glyph(method)}${escapeHtml(text)}</span>`;

const colorScale = () => ({ domain: run.methods, range: run.methods.map(colorOf) });
const shapeScale = () => ({ domain: run.methods, range: run.methods.map(m => styleOf(m).shape) });
const methodColor = extra => ({ field: 'method', type: 'nominal', scale: colorScale(), legend: null, ...extra });
const methodShape = () => ({ field: 'method', type: 'nominal', scale: shapeScale(), legend: null });

function chartConfig() {
  const ink = css('--ink'),
    soft = css('--soft'),
    line = css('--line'),
    font = css('--sans');
  return {
    background: 'transparent',
    font,
    padding: 2,
    view: { stroke: null },
    axis: {
      labelColor: soft,
      titleColor: soft,
      gridColor: line,
      domain: false,
      tickColor: line,
      ticks: false,
      labelFontSize: 11,
      titleFontSize: 11.5,
      titleFontWeight: 500,
      labelPadding: 6,
      titlePadding: 9,
      gridWidth: 1,
      labelFont: font,
      titleFont: font,
    },
    axisY: { labelFontSize: 11 },
    header: {
      labelColor: ink,
      labelFontSize: 12.5,
      labelFontWeight: 620,
      labelPadding: 8,
      labelFont: font,
      labelAnchor: 'start',
      title: null,
    },
    title: {
      color: ink,
      fontSize: 12.5,
      fontWeight: 620,
      anchor: 'start',
      offset: 10,
      font,
      subtitleColor: soft,
      subtitleFontSize: 11.5,
      subtitleFont: font,
    },
    legend: {
      labelColor: soft,
      titleColor: soft,
      labelFontSize: 11,
      titleFontSize: 11,
      labelFont: font,
      symbolStrokeWidth: 2,
      title: null,
    },
    text: { color: soft, font, fontSize: 11 },
    rule: { color: soft },
    line: { strokeWidth: 2 },
    point: { filled: true, size: 44 },
  };
}

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById('theme');
  button.textContent = theme === 'dark' ? 'Light' : 'Dark';
}
function setupTheme(redraw) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  const update = () => {
    applyTheme(chosen ?? (system.matches ? 'dark' : 'light'));
    redraw();
  };
  applyTheme(system.matches ? 'dark' : 'light');
  system.addEventListener('change', update);
  document.getElementById('theme').addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    update();
  });
}
