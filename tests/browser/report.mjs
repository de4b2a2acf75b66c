// report.mjs PAGE TABLE [SCREENSHOTS]: opens a report in headless Chromium and uses it as a reader does. TABLE is the
// loss-benchmarking.csv of the same run.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.mjs';

const [page, table, pictures] = process.argv.slice(2);
assert.ok(statSync(page).size < 2.5e6, `the page has ${statSync(page).size} bytes`);

const browser = await Browser.open();
const drawn = () => browser.until("document.body?.dataset.drawn === 'yes'");
const open = async () => {
  await browser.evaluate("if (document.body) document.body.dataset.drawn = 'no'; null");
  await browser.send('Page.navigate', { url: new URL(page, 'file://').href });
  await drawn();
};
// A change shows at once that it has begun, so waiting for its end cannot be too early.
const after = async expression => {
  await browser.evaluate(`{ ${expression}; null }`);
  await drawn();
};
const count = selector => browser.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
const text = selector => browser.evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`);
const picture = async name => {
  if (pictures) await browser.screenshot(join(pictures, `${name}.png`));
};
const points = () => count('#truth .mark-symbol path');
const estimates = async () =>
  Number(/of (\d+) estimate/.exec((await text('.pager span')).replaceAll('\u202f', ''))?.[1] ?? NaN);
const fits = async () =>
  assert.ok(
    await browser.evaluate('document.documentElement.scrollWidth <= innerWidth'),
    'the page is wider than the screen',
  );

const checks = {
  async 'figures are drawn'() {
    const figures =
      await browser.evaluate(`[...document.querySelectorAll('figure[data-figure]')].map(f => [f.dataset.figure, f.hidden,
      f.querySelectorAll('svg .mark-symbol path, svg .mark-line path, svg .mark-rect path, svg .mark-rule line').length, f.parentElement.querySelector('.why')?.textContent ?? ''])`);
    assert.equal(figures.length, 10 + 6);
    for (const [name, hidden, marks] of figures) assert.ok(!hidden && marks > 2, `${name} has ${marks} marks`);
    for (const [name, , , why] of figures) assert.equal(why, '', name);
    assert.equal(
      await browser.evaluate("[...document.querySelectorAll('.chart')].some(c => /NaN|undefined/.test(c.innerHTML))"),
      false,
      'no figure holds NaN',
    );
    assert.equal(
      await browser.evaluate('/NaN|undefined|\\[object/.test(document.body.innerText)'),
      false,
      'no text holds NaN',
    );
    await fits();
    await picture('light');
  },
  async 'tables hold what the program wrote'() {
    const lines = readFileSync(table, 'utf8')
      .trim()
      .split('\n')
      .map(line => line.split(','));
    const shown = await browser.evaluate(
      "[...document.querySelectorAll('.loss-table tbody tr')].map(r => [...r.children].map(c => c.textContent))",
    );
    assert.equal(shown.length, lines.length - 1);
    lines.slice(1).forEach((line, i) =>
      shown[i].slice(1, -1).forEach((cell, j) => {
        const value = Number(line[j + 2]),
          [mantissa, exponent] = cell.split(' × 10');
        const seen = exponent
          ? Number(mantissa) *
            10 ** Number([...exponent].map(c => ('⁰¹²³⁴⁵⁶⁷⁸⁹'.includes(c) ? '⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(c) : '-')).join(''))
          : Number(cell);
        assert.ok(Math.abs(seen - value) <= 0.05 * value, `${line[0]} ${line[1]}: ${cell} for ${value}`);
      }),
    );
    assert.equal(await count('.loss-table tbody tr'), await count('.loss-table td.best'), 'one best per row');
  },
  async 'filters act on figures and tables'() {
    const before = await points(),
      all = await estimates(),
      rows = await count('#scoreboard-table tbody tr');
    await after("document.querySelector('[data-group=methods][value=mc]').click()");
    assert.ok((await points()) < before);
    assert.equal(await count('#scoreboard-table tbody tr'), rows - 1);
    assert.ok((await estimates()) < all);
    await after("document.querySelector('[data-group=models]').click()");
    assert.equal(await count('.loss-table'), 1);
    await after("document.querySelectorAll('[data-group=models]')[1].click()");
    assert.equal(await count('figure[hidden]'), 9, 'nothing is chosen, so nothing is drawn');
    await after("document.getElementById('reset').click()");
    assert.equal(await points(), before);
    assert.equal(await estimates(), all);
  },
  async 'the profile and the setting change the scores'() {
    const before = await text('#scoreboard-table');
    await after(
      "{ const p = document.getElementById('profile'); p.value = 3; p.dispatchEvent(new Event('change', { bubbles: true })) }",
    );
    assert.notEqual(await text('#scoreboard-table'), before);
    await after(
      "{ const s = document.querySelector('[data-setting]'); s.selectedIndex = 1 - s.selectedIndex; s.dispatchEvent(new Event('change', { bubbles: true })) }",
    );
    assert.match(await text('#scoreboard-table'), /\//);
    await browser.evaluate("document.querySelector('[data-value=pair]').click()");
    await browser.until("document.querySelector('#truth .chart').textContent.includes('dt-2l · if')");
    await browser.evaluate("document.querySelector('[data-value=method]').click()");
    await after("document.getElementById('reset').click()");
  },
  async 'points are reached and followed from the keyboard'() {
    await browser.evaluate("document.querySelector('#truth .chart').focus()");
    await browser.key('ArrowRight');
    await browser.key('ArrowRight');
    await browser.until("/truth .* estimate /.test(document.querySelector('#truth .readout').textContent)");
    await browser.key('Enter');
    assert.match(await browser.evaluate('location.hash'), /^#item-\d+$/);
    assert.equal(
      await browser.evaluate("'#' + document.activeElement.id === location.hash && document.activeElement.className"),
      'here',
    );
  },
  async 'a click on a point leads to its row'() {
    await browser.evaluate(
      "history.replaceState(null, '', '#'); document.querySelector('#truth').scrollIntoView({ block: 'start' })",
    );
    const box = await browser.evaluate(
      "(() => { const r = [...document.querySelectorAll('#truth .mark-symbol path')].find(p => p.getBoundingClientRect().width > 2).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()",
    );
    for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased'])
      await browser.send('Input.dispatchMouseEvent', {
        type,
        x: box[0],
        y: box[1],
        button: type === 'mouseMoved' ? 'none' : 'left',
        clickCount: 1,
      });
    await browser.until('/^#item-/.test(location.hash)', 3);
  },
  async 'hover tells the numbers'() {
    await browser.evaluate("document.querySelector('#truth').scrollIntoView({ block: 'start' })");
    const [x, y] = await browser.evaluate(
      "(() => { const r = [...document.querySelectorAll('#truth .mark-symbol path')].find(p => p.getBoundingClientRect().width > 2).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()",
    );
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: x - 40, y: y - 40 });
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y });
    await browser.until("document.querySelector('#vg-tooltip-element')?.textContent.includes('interval')", 3);
    const tip = await text('#vg-tooltip-element');
    for (const word of ['method', 'target', 'truth', 'estimate', '95% interval', 'cost', 'forward passes'])
      assert.ok(tip.includes(word), `${word} in ${tip}`);
    await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: 1, y: 1 });
  },
  async 'rows sort'() {
    const column = () =>
      browser.evaluate("[...document.querySelectorAll('#items-table tbody tr')].map(r => r.children[9].textContent)");
    await browser.evaluate("document.querySelector('[data-sort=cost]').click()");
    const up = await column();
    await browser.evaluate("document.querySelector('[data-sort=cost]').click()");
    assert.notDeepEqual(await column(), up);
    assert.equal(
      await browser.evaluate("document.querySelector('[data-sort=cost]').closest('th').getAttribute('aria-sort')"),
      'descending',
    );
  },
  async dark() {
    const light = await browser.evaluate('getComputedStyle(document.body).backgroundColor');
    await browser.prefer('dark');
    await browser.until("document.documentElement.dataset.theme === 'dark'");
    await drawn();
    assert.notEqual(await browser.evaluate('getComputedStyle(document.body).backgroundColor'), light);
    await picture('dark');
    await after("document.getElementById('theme').click()");
    assert.equal(
      await browser.evaluate('getComputedStyle(document.body).backgroundColor'),
      light,
      'the button overrules the system',
    );
  },
  async phone() {
    await browser.size(360, 740, 2);
    await browser.until('innerWidth === 360');
    await after("dispatchEvent(new Event('resize'))");
    const charts = "[...document.querySelectorAll('.chart svg.marks')]";
    assert.equal(await browser.evaluate(`${charts}.filter(s => s.getBoundingClientRect().width > 360).length`), 0);
    assert.equal(
      await browser.evaluate(`${charts}.filter(s => s.getBoundingClientRect().width < 0.9 * s.viewBox.baseVal.width).length`),
      0,
      'figures are drawn for the screen, not shrunk to it',
    );
    await fits();
    await open(); // as on a phone from the start
    assert.equal(await browser.evaluate("document.getElementById('filters').open"), false);
    await fits();
    await picture('phone');
  },
};

try {
  await browser.size(1280, 900);
  await browser.prefer('light');
  await open();
  for (const [name, check] of Object.entries(checks)) {
    const begun = Date.now();
    await check();
    console.log(`ok ${name} (${Date.now() - begun} ms)`);
  }
  assert.deepEqual(browser.errors, [], 'nothing was reported in the console');
} finally {
  await browser.close();
}
