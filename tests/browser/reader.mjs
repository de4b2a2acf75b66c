// A reader of the report in headless Chromium: opens pages and looks at them.
import { join } from 'node:path';
import { Browser } from './browser.mjs';

export async function openReader(pictures) {
  const browser = await Browser.open();
  const drawn = () => browser.until("document.body?.dataset.drawn === 'yes'");
  const quoted = JSON.stringify;
  return {
    browser,
    drawn,
    async open(page, hash = '') {
      await browser.evaluate("if (document.body) document.body.dataset.drawn = 'no'; null");
      await browser.send('Page.navigate', { url: 'about:blank' });
      await browser.send('Page.navigate', { url: new URL(page, 'file://').href + hash });
      await drawn();
    },
    // A change shows at once that it has begun, so waiting for its end cannot be too early.
    async after(expression) {
      await browser.evaluate(`{ ${expression}; null }`);
      await drawn();
    },
    count: selector => browser.evaluate(`document.querySelectorAll(${quoted(selector)}).length`),
    text: selector => browser.evaluate(`document.querySelector(${quoted(selector)})?.textContent ?? ''`),
    texts: selector => browser.evaluate(`[...document.querySelectorAll(${quoted(selector)})].map(e => e.textContent)`),
    // What a download button would save.
    async saved(what) {
      await browser.evaluate(`{
        URL.createObjectURL = blob => { window.savedBlob = blob; return 'blob:none'; };
        HTMLAnchorElement.prototype.click = function () { window.savedName = this.download; };
        document.querySelector('[data-download="${what}"]').click(); null }`);
      return browser.evaluate('savedBlob.text()');
    },
    async picture(name) {
      if (pictures) await browser.screenshot(join(pictures, `${name}.png`));
    },
    hash: () => browser.evaluate('location.hash'),
    fits: () => browser.evaluate('document.documentElement.scrollWidth <= innerWidth'),
  };
}

export async function runChecks(checks) {
  for (const [name, check] of Object.entries(checks)) {
    const begun = Date.now();
    await check();
    console.log(`ok ${name} (${Date.now() - begun} ms)`);
  }
}
