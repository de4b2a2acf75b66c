// report-figures.mjs PAGE DIR PREFIX FIGURE...: figures of a report (truth, loss-model, cost, coverage, ...) as DIR/PREFIX-FIGURE.png,
// as headless Chromium draws them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Browser } from '../tests/browser/browser.mjs';

const [page, folder, prefix, ...figures] = process.argv.slice(2);
if (!figures.length) {
  console.error('report-figures.mjs PAGE DIR PREFIX FIGURE...');
  process.exit(2);
}
const browser = await Browser.open();
try {
  await browser.prefer('light');
  await browser.size(860, 900, 1.6);  // three panels in a row
  await browser.send('Page.navigate', { url: pathToFileURL(page).href });
  await browser.until("document.body?.dataset.drawn === 'yes'", 60);
  for (const figure of figures) {
    const box = await browser.evaluate(`(() => {
      const box = document.querySelector('#${figure} figure .chart')?.getBoundingClientRect();
      return box && { x: box.x + scrollX - 8, y: box.y + scrollY - 8, width: box.width + 16, height: box.height + 16 };
    })()`);
    if (!box) throw new Error(`${page} has no figure ${figure}`);
    const { data } = await browser.send('Page.captureScreenshot', {
      format: 'png',
      captureBeyondViewport: true,
      clip: { ...box, scale: 1 },
    });
    writeFileSync(join(folder, `${prefix}-${figure}.png`), Buffer.from(data, 'base64'));
  }
} finally {
  await browser.close();
}
