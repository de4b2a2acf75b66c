// crafted.mjs DEEPTAIL WORK [SCREENSHOTS]: pages of runs that are made so that a sentence must, or must not, appear.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { made, writeRun } from './made_run.mjs';
import { openReader, runChecks } from './reader.mjs';

const [deeptail, work, pictures] = process.argv.slice(2);
const { browser, open, after, count, text, texts, saved, picture, hash, fits } = await openReader(pictures);

let pages = 0;
function report(...runs) {
  const folders = runs.map(items => writeRun(join(work, `run-${++pages}`), items)),
    page = join(work, `page-${pages}.html`);
  execFileSync(deeptail, ['report', ...folders, ...(runs.length > 1 ? ['--compare'] : []), '--out', page, '--quiet']);
  return page;
}
const show = async (...runs) => open(report(...runs));
const told = () => text('#takeaways');
const off = factor => q => ({ p: factor * q });
const exact = off(1.05);

const checks = {
  async 'one method beats another only where resampled targets agree'() {
    await show(made(12, { qld: exact, mc: off(3) }));
    assert.match(await told(), /Trust qld most/);
    assert.match(await told(), /clearly lower/);
    await show(made(30, { qld: exact, mc: (q, k) => ({ p: k === 7 ? 30 * q : 1.05 * q }) }));
    assert.doesNotMatch(await told(), /Trust|clearly lower/, 'one bad target of 30 is no difference');
    assert.match(await told(), /qld has the lowest loss, but not clearly.*mc might do better/);
    assert.match(await text('#loss-dist h2'), /nowhere clearly/);
    await show(made(4, { qld: exact, mc: off(3) }));
    assert.doesNotMatch(await told(), /Trust/, 'four targets say nothing');
    assert.match(await told(), /too few targets/);
  },
  async 'methods change places only where both orders are clear'() {
    await show(made(30, { qld: off(1 / 3), mc: off(4) }));
    assert.match(await told(), /Which is better depends on the question.*qld beats mc/);
    assert.match(await text('#metrics h2'), /qld beats mc/);
    await show(made(30, { qld: (q, k) => ({ p: k === 7 ? q / 40 : q }), mc: off(2.2) }));
    for (const where of ['#takeaways', '#metrics h2'])
      assert.doesNotMatch(await text(where), /beats|depends on the question/, 'one target of 30 turns the order');
    assert.match(await told(), /The order changes with the question, not clearly/);
  },
  async 'intervals that say nothing are not praised'() {
    const unit = q => ({ p: q, low: 0, high: 1 }),
      wide = q => ({ p: q, low: q / 1000, high: Math.min(1, 1000 * q) });
    await show(made(30, { qld: unit, mc: wide }));
    assert.doesNotMatch(await told(), /word/);
    assert.match(await told(), /No intervals that say much/);
    assert.match(await text('#coverage h2'), /half-width ×1000|none has a lower end/);
    await show(made(30, { qld: exact, mc: unit }));
    assert.match(
      await told(),
      /The intervals of qld can be taken at their word.*100% of 30 targets \(typical half-width ×2\.0\)/,
    );
    await show(made(10, { qld: exact, mc: unit }));
    assert.doesNotMatch(await told(), /word/, 'ten targets cannot tell 95% from 80%');
    assert.match(await told(), /Too few targets to judge intervals/);
    await show(made(30, { qld: off(5) }));
    assert.match(await told(), /No intervals can be taken at their word/);
  },
  async 'the fewest passes are those of all methods, or nobody’s'() {
    const costs = cost => q => ({ p: q, cost });
    await show(made(8, { qld: costs(5000), itgis: costs(2000), mc: () => ({ p: 0, cost: 100 }) }));
    assert.match(await told(), /mc needs the fewest forward passes100 per target .*only ever answers zero/);
    await after("document.querySelector('[data-group=methods][value=mc]').click()");
    assert.match(await told(), /itgis needs the fewest forward passes of the methods shown/);
    await show(made(8, { qld: costs(1000), mc: costs(1010) }));
    assert.doesNotMatch(await told(), /fewest/, 'as dear as each other');
    await show([...made(8, { qld: costs(1000), mc: costs(10) }), ...made(8, { qld: costs(1000) }, { dist: 'e' })]);
    assert.doesNotMatch(await told(), /fewest/, 'not on the same inputs');
  },
  async 'a typical error comes with the share behind it'() {
    await show(made(20, { qld: exact, itgis: (q, k) => ({ p: k % 2 ? 0 : 2 * q, cost: 10 }) }));
    assert.match(
      (await texts('#scoreboard-table tbody tr')).find(t => t.includes('itgis')),
      /×2\.0 of 50%/,
    );
    assert.match(await told(), /off by ×2\.0 on the 50% of estimates that are not zero/);
    assert.match(await text('#scoreboard-table thead'), /log scale/);
  },
  async 'decades are equal and what lies beyond is an arrow'() {
    await show(made(20, { qld: off(1e4), mc: (q, k) => ({ p: k ? q : q / 1e5 }) }));
    const arrows = await browser.evaluate(
      "[...document.querySelectorAll('#truth .mark-symbol path')].filter(p => (p.getAttribute('d').match(/L|H|V/gi) ?? []).length === 6).length",
    );
    assert.equal(arrows, 21);
    const [wide, high] = await browser.evaluate(`(() => {
      const lines = [...document.querySelectorAll('#truth .role-axis-grid line')].map(l => l.getBoundingClientRect());
      const step = values => { const all = [...new Set(values.map(v => Math.round(v)))].sort((a, b) => a - b); return all[1] - all[0]; };
      return [step(lines.filter(r => r.width < 2).map(r => r.x)), step(lines.filter(r => r.height < 2).map(r => r.y))];
    })()`);
    assert.ok(Math.abs(wide - high) <= 2, `one decade is ${high} high and ${wide} wide`);
  },
  async 'one model has its metrics in a table'() {
    await show(made(8, { qld: exact, mc: off(3) }));
    assert.equal(await count('#metrics-table tbody tr'), 2);
    assert.match(
      await text('#left-out'),
      /2 figures left out: Loss by model size, Settings of one method|Loss by model size/,
    );
    assert.match(await saved('metrics'), /^method,benchmarking,/);
  },
  async 'names that every object has are names like others'() {
    const run = made(
      8,
      { constructor: exact, ['__proto__']: off(2), mc: off(3) },
      { model: '__proto__', dist: 'toString' },
    );
    for (const [k, i] of made(
      8,
      { x: off(2) },
      { model: '__proto__', dist: 'toString', variant: '__proto__' },
    ).entries())
      run.push({ ...i, method: '__proto__', item: `${k}`.padStart(16, '0') });
    await show(run);
    assert.equal(await count('#scoreboard-table tbody tr'), 3);
    assert.match(await text('#scoreboard-table'), /__proto__/);
    assert.equal(await count('[data-filter=methods] .chip'), 3);
    await after("document.querySelectorAll('[data-group=methods]')[0].click()");
    assert.equal(await count('#scoreboard-table tbody tr'), 2);
    assert.equal((await count('figure[hidden]')) < 6, true);
  },
  async 'files hold no formulas'() {
    await show(
      made(3, { qld: exact }, { model: '=1+1', dist: '@x', warnings: ['-2 is, "odd"', '-2 is, "odd"', 'other'] }),
    );
    const lines = (await saved('estimates')).trim().split('\r\n');
    assert.equal(lines.length, 4);
    assert.match(lines[1], /,'=1\+1,'@x,/);
    assert.match(lines[1], /"'-2 is, ""odd""; /);
    assert.equal(await browser.evaluate('savedName'), 'estimates.csv');
    assert.match(await text('.all-warnings summary'), /9 warnings of 3 estimates/);
    assert.deepEqual(await texts('.all-warnings li'), ['6 × -2 is, "odd"', '3 × other'], 'equal ones are told once');
  },
  async 'the command of a row repeats its estimate'() {
    const suite = join(work, 'suite.toml'),
      run = join(work, 'real'),
      page = join(work, 'real.html');
    writeFileSync(
      suite,
      'name = "s"\nmodels = ["dt-1l"]\ndistributions = ["hex"]\nseed = 5\n[targets]\nband = [1e-3, 1e-1]\ncount = 1\n' +
        '[[methods]]\nmethod = "mc"\nvariant = "mine"\nbudget = 4096\n[[methods]]\nmethod = "qld"\ncalibration = [1024]\n',
    );
    execFileSync(deeptail, ['bench', 'run', suite, '--out', run, '--quiet']);
    execFileSync(deeptail, ['report', run, '--out', page, '--quiet']);
    await open(page);
    assert.equal(await count('#items-table [data-more]'), 2);
    for (const k of [0, 1])
      await browser.evaluate(`document.querySelectorAll('#items-table [data-more]')[${k}].click()`);
    const commands = await texts('.detail .command code'),
      lines = (await saved('estimates')).trim().split('\r\n').slice(1);
    for (const [k, command] of commands.entries()) {
      const again = JSON.parse(
          execFileSync(deeptail, [...command.split(' ').slice(1), '--json', '--quiet'], { encoding: 'utf8' }),
        ),
        shown = Number(lines[k].split(',')[10]);
      assert.ok(Math.abs(again.p - shown) < 2e-4 * shown, `${command}: ${again.p}, ${shown} in the page`);
    }
  },
  async 'a run without any truth'() {
    const unknown = made(
      12,
      { tokensplit: exact, mc: (q, k) => (k % 2 ? { p: 0, cost: 50 } : { p: q, cost: 50 }) },
      { samples: 0 },
    );
    await show(unknown);
    assert.match(await text('#unfinished'), /No truth is known/);
    assert.match(await told(), /No truth is known.*tokensplit for 100% and mc for 50%/);
    assert.match(await told(), /mc needs the fewest forward passes/);
    assert.doesNotMatch(await text('#scoreboard-table thead'), /loss|Bias|holds/);
    assert.equal(await count('#items-table tbody tr'), 24);
    assert.match(await text('#items-table'), /not known/);
    assert.equal(await count('#answers .mark-symbol path'), 24);
    assert.ok(await browser.evaluate("document.getElementById('profile').closest('label').hidden"));
    for (const id of ['truth', 'loss-dist', 'metrics', 'cost', 'coverage', 'tables'])
      assert.ok(await browser.evaluate(`document.getElementById('${id}').hidden`), id);
    assert.equal(await browser.evaluate('/NaN|undefined|Infinity/.test(document.body.innerText)'), false);
    await picture('unknown');
    await browser.size(390, 800, 2);
    await open(report(unknown));
    assert.ok(await fits());
    await picture('unknown-phone');
    await browser.size(1280, 900);
  },
  async 'a run with some truths'() {
    const known = made(10, { qld: exact, mc: off(3) }),
      unknown = made(4, { qld: exact, mc: off(3) }, { samples: 0 }).map(i => ({ ...i, target: [i.target[0] + 100] }));
    for (const [k, i] of unknown.entries()) i.item = `${k}`.padStart(16, 'f');
    await show([...known, ...unknown, ...made(2, { qld: exact, mc: off(3) }, { dist: 'e', samples: 0 })]);
    assert.match(await text('#unfinished'), /not known for 12 of 32 estimates/);
    assert.match(await told(), /Trust qld most/, 'on those that have one');
    assert.equal(await count('#truth .mark-symbol path'), 20);
    assert.equal(await count('.loss-table tbody tr'), 2, 'the distribution without truths has no row');
    assert.match(await text('#answers h2'), /6 targets without a known truth/);
    assert.equal(await browser.evaluate('/NaN|undefined|Infinity/.test(document.body.innerText)'), false);
  },
  async 'two runs side by side'() {
    const a = made(12, { qld: exact, mc: off(3), itgis: exact }),
      b = made(14, { qld: off(1.2), mc: exact, gld: exact });
    await show(a, b);
    assert.match(await text('h1'), /Two runs/);
    assert.match(await told(), /24 estimates in both runs12 in A alone, 18 in B alone/);
    assert.match(await told(), /Clearly lower in B: mc/);
    assert.equal(await count('#compare-table tbody tr'), 2);
    assert.match(await text('#compare-table'), /→/);
    assert.equal(await count('#compare .mark-symbol path'), 24);
    assert.equal(await count('#changes-table tbody tr'), 24);
    assert.match((await texts('#changes-table tbody tr'))[0], /mc.*×2\.9 down/);
    assert.equal((await saved('changes')).trim().split('\r\n').length, 25);
    await picture('compare');
    await after("document.querySelector('[data-group=methods][value=mc]').click()");
    assert.equal(await count('#compare .mark-symbol path'), 12);
    assert.equal(await hash(), '#methods=qld');
    await show(a, a);
    assert.match(await told(), /No estimate changed.*36 of 36 estimates shown are equal/);
    assert.match(await told(), /No clear change/);
    await browser.size(390, 800, 2);
    await show(a, b);
    assert.ok(await fits());
    await picture('compare-phone');
    await browser.size(1280, 900);
  },
};

try {
  await browser.size(1280, 900);
  await browser.prefer('light');
  await runChecks(checks);
  assert.deepEqual(browser.errors, [], 'nothing was reported in the console');
} finally {
  await browser.close();
}
