// bundle.mjs NODE_MODULES OUT: the page as one file that needs no network: libraries, style and script inlined.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const read = (...parts) => readFileSync(join(...parts), 'utf8');

// Inside <script> the browser looks for these whatever the language's quotes say.
const inScript = text => text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--');
const libraries = [
  'vega/build/vega.min.js',
  'vega-lite/build/vega-lite.min.js',
  'vega-embed/build/vega-embed.min.js',
].map(file => read(modules, file).replace(/\n\/\/# sourceMappingURL=.*\s*$/, ''));
const own = readdirSync(join(here, 'script'))
  .filter(name => name.endsWith('.js'))
  .sort()
  .map(name => read(here, 'script', name));

// The superscripts of Latin-1 are left to the next font, which has all ten: exponents should not mix two fonts.
const fontFace = (
  subset,
  range,
) => `@font-face { font-family: "Inter Report"; font-weight: 100 900; font-display: block; unicode-range: ${range};
  src: url(data:font/woff2;base64,${readFileSync(join(modules, `@fontsource-variable/inter/files/inter-${subset}-wght-normal.woff2`)).toString('base64')}) format("woff2"); }\n`;
const fonts =
  fontFace('latin', 'U+0-B1, U+B4-B8, U+BA-FF, U+2000-206F, U+2212, U+2191, U+2193') + fontFace('greek', 'U+370-3FF');
const notices = ['vega', 'vega-lite', 'vega-embed', '@fontsource-variable/inter']
  .map(name => `${name}\n${read(modules, name, 'LICENSE')}`)
  .join('\n\n')
  .replace(/--+/g, '-');

const parts = {
  STYLE: fonts + read(here, 'style.css'),
  NOTICES: `<!-- This page contains:\n\n${notices}\n-->`,
  LIBRARIES: libraries.map(inScript).join('\n;'),
  SCRIPT: inScript(`'use strict';\n(() => {\n${own.join('\n')}\nstart();\n})();`),
};
const page = read(here, 'index.html').replace(/<!--(STYLE|NOTICES|LIBRARIES|SCRIPT)-->/g, (_, name) => parts[name]);
if (page.split('@DEEPTAIL_DATA@').length !== 2) throw new Error('index.html must hold the data marker once');
writeFileSync(out, page);
