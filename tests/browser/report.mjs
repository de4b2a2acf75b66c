// report.mjs PAGE TABLE [SCREENSHOTS]: opens a report in headless Chromium and uses it as a reader does. TABLE is the
// loss-benchmarking.csv of the same run.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { openReader, runChecks } from './reader.mjs';

const [page, table, pictures] = process.argv.slice(2);
assert.ok(statSync(page).size < 2.5e6, `the page has ${statSync(page).size} bytes`);

const reader = await openReader(pictures);
const { browser, after, count, text, texts, saved, picture, hash } = reader;
const open = (at = '') => reader.open(page, at);
const points = () => count('#truth .mark-symbol path');
const estimates = async () =>
  Number(/of (\d+) estimate/.exec((await text('.pager span')).replaceAll('\u202f', ''))?.[1] ?? NaN);
const fits = async () => assert.ok(await reader.fits(), 'the page is wider than the screen');

const checks = {
  async 'figures are drawn'() {
    assert.equal(
      await browser.evaluate("document.getElementById('spb-fold').open"),
      false,
      'made-up errors are folded',
    );
    await after("document.getElementById('spb-fold').open = true; document.body.dataset.drawn = 'wait'");
    const figures =
      await browser.evaluate(`[...document.querySelectorAll('figure[data-figure]')].map(f => [f.dataset.figure, f.hidden,
      f.querySelectorAll('svg .mark-symbol path, svg .mark-line path, svg .mark-rect path, svg .mark-rule line').length])`);
    assert.equal(figures.length, 10 + 8);
    for (const [name, hidden, marks] of figures)
      assert.equal(!hidden && marks > 2, name !== 'answers', `${name} has ${marks} marks`);
    assert.ok(await browser.evaluate("document.getElementById('left-out').hidden"), 'nothing is left out');
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
    assert.equal(await count('figure[hidden]'), 10, 'nothing is chosen, so nothing is drawn');
    assert.match(await text('#left-out summary'), /9 figures left out/);
    assert.match(await text('#left-out'), /nothing is chosen/);
    await after("document.getElementById('reset').click()");
    assert.equal(await points(), before);
    assert.equal(await estimates(), all);
    assert.equal(await hash(), '');
  },
  async 'what is chosen is in the address, both ways'() {
    await after("document.querySelector('[data-group=methods][value=mc]').click()");
    assert.equal(await hash(), '#methods=tokensplit,ga-amls,qld,itgis');
    await after(
      "{ const p = document.getElementById('profile'); p.value = 3; p.dispatchEvent(new Event('change', { bubbles: true })) }",
    );
    await after("document.querySelectorAll('[data-group=dists]')[0].click()");
    assert.equal(await hash(), '#methods=tokensplit,ga-amls,qld,itgis&dists=if&profile=audit');
    const board = await text('#scoreboard-table');
    await open('#methods=tokensplit,ga-amls,qld,itgis&dists=if&profile=audit');
    assert.equal(await text('#scoreboard-table'), board, 'a reader of the link sees the same');
    assert.equal(await count('[data-group]:not(:checked)'), 2);
    await after("document.body.dataset.drawn = 'no'; location.hash = '#methods=qld,nobody&settings=ga-amls%2Frwmh'");
    assert.deepEqual(await texts('#scoreboard-table tbody th'), ['qld'], 'names that are not there are passed over');
    assert.equal(
      await browser.evaluate("document.querySelector('[data-setting]').selectedOptions[0].text"),
      'ga-amls/rwmh',
    );
    await browser.evaluate("location.hash = '#scoreboard'; null");
    assert.deepEqual(await texts('#scoreboard-table tbody th'), ['qld'], 'a place on the page is no choice');
    await after("document.body.dataset.drawn = 'no'; location.hash = ''");
    assert.equal(await count('#scoreboard-table tbody tr'), 5);
  },
  async 'a row opens to triggers, levels and the command that repeats it'() {
    const row = await browser.evaluate(
      "[...document.querySelectorAll('#items-table tbody tr')].find(r => r.textContent.includes('tokensplit')).id",
    );
    await browser.evaluate(`document.querySelector('#${row} [data-more]').click()`);
    assert.equal(await count('.detail .triggers li'), 3);
    assert.match(await text('.detail'), /3 of 5/);
    assert.equal(await count('.detail svg.spark polyline'), 1);
    assert.match(await text('.detail'), /\d+ levels/);
    assert.match(
      await text('.detail .command code'),
      /^deeptail estimate --model dt-\dl --dist \w+ --target \d+ --method tokensplit --budget 2\^18 --seed 1$/,
    );
    await browser.evaluate("document.querySelector('[data-copy]').click()");
    await browser.until("/Copied|Selected/.test(document.querySelector('[data-copy]').textContent)", 3);
    await picture('row');
    await browser.evaluate(`document.querySelector('#${row} [data-more]').click()`);
    assert.equal(await count('.detail'), 0);
  },
  async 'tables can be saved'() {
    assert.equal((await saved('estimates')).trim().split('\r\n').length, 1 + (await estimates()));
    assert.equal((await saved('scoreboard')).trim().split('\r\n').length, 6);
    assert.match(await saved('losses'), /^model,dist,tokensplit,ga-amls\/mala,qld,itgis,mc,noise\r\ndt-1l,hex,/);
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
    assert.match(await hash(), /^#item=\d+$/);
    assert.equal(
      await browser.evaluate(
        "'#' + document.activeElement.id.replace('-', '=') === location.hash && document.activeElement.className",
      ),
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
    await browser.until('/^#item=/.test(location.hash)', 3);
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
      browser.evaluate(
        "[...document.querySelectorAll('#items-table tbody tr[id]')].map(r => r.children[9].textContent)",
      );
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
    await reader.drawn();
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
      await browser.evaluate(
        `${charts}.filter(s => s.getBoundingClientRect().width < 0.9 * s.viewBox.baseVal.width).length`,
      ),
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
  await runChecks(checks);
  assert.deepEqual(browser.errors, [], 'nothing was reported in the console');
} finally {
  await browser.close();
}
