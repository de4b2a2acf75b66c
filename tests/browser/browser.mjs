// Headless Chromium through its DevTools pipe: no driver to download. Messages are JSON, ended by a zero byte.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const sleep = ms => new Promise(done => setTimeout(done, ms));

export class Browser {
  static async open(program = process.env.CHROMIUM ?? 'chromium') {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), 'deeptail-browser-'));
    browser.process = spawn(
      program,
      [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--hide-scrollbars',
        '--no-first-run',
        '--disable-extensions',
        '--disable-background-networking',
        '--disable-component-update',
        '--force-color-profile=srgb',
        `--user-data-dir=${browser.profile}`,
        '--remote-debugging-pipe',
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    );
    browser.pending = new Map();
    browser.next = 0;
    browser.errors = [];
    browser.failed = new Promise((_, fail) =>
      browser.process.once('error', error => fail(new Error(`${program} does not start: ${error.message}`))),
    );
    browser.failed.catch(() => {});
    let rest = '';
    browser.process.stdio[4].on('data', data => {
      const messages = (rest + data).split('\0');
      rest = messages.pop();
      for (const text of messages) browser.receive(JSON.parse(text));
    });
    browser.process.stdio[3].on('error', () => {});
    const { targetInfos } = await browser.send('Target.getTargets');
    const page =
      targetInfos.find(t => t.type === 'page') ?? (await browser.send('Target.createTarget', { url: 'about:blank' }));
    browser.session = (
      await browser.send('Target.attachToTarget', { targetId: page.targetId, flatten: true })
    ).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await browser.send(`${domain}.enable`);
    return browser;
  }

  receive(message) {
    if (message.id !== undefined) {
      const { done, fail } = this.pending.get(message.id);
      this.pending.delete(message.id);
      if (message.error) fail(new Error(message.error.message));
      else done(message.result);
    } else if (message.method === 'Runtime.exceptionThrown')
      this.errors.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
    else if (message.method === 'Runtime.consoleAPICalled' && ['error', 'warning'].includes(message.params.type))
      this.errors.push(message.params.args.map(a => a.value ?? a.description).join(' '));
    else if (message.method === 'Log.entryAdded' && message.params.entry.level === 'error')
      this.errors.push(message.params.entry.text);
    else if (message.method === 'Network.requestWillBeSent' && /^(https?|wss?):/.test(message.params.request.url))
      this.errors.push(`asked the network for ${message.params.request.url}`);
  }
  send(method, params = {}) {
    const id = this.next++;
    const answer = new Promise((done, fail) => this.pending.set(id, { done, fail }));
    this.process.stdio[3].write(
      `${JSON.stringify({ id, method, params, ...(this.session ? { sessionId: this.session } : {}) })}\0`,
    );
    return Promise.race([answer, this.failed]);
  }

  // The value of an expression in the page; promises are waited for.
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  async until(expression, seconds = 15) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; await sleep(25))
      if (await this.evaluate(expression)) return;
    throw new Error(`waited ${seconds} s in vain for ${expression}; errors: ${this.errors.join('; ') || 'none'}`);
  }
  size(width, height, scale = 1) {
    return this.send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: scale,
      mobile: width < 500,
    });
  }
  prefer(scheme) {
    return this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  }
  async key(key) {
    const code = { Tab: 9, Enter: 13, ArrowRight: 39, ArrowLeft: 37, ' ': 32 }[key],
      text = key === 'Enter' ? '\r' : key === ' ' ? ' ' : undefined;
    await this.send('Input.dispatchKeyEvent', {
      type: 'keyDown',
      key,
      code: key === ' ' ? 'Space' : key,
      windowsVirtualKeyCode: code,
      text,
    });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', key, windowsVirtualKeyCode: code });
  }
  async screenshot(path, { full = true } = {}) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: full });
    writeFileSync(path, Buffer.from(data, 'base64'));
  }
  async close() {
    const ended = new Promise(done => this.process.once('exit', done));
    this.session = undefined;
    this.send('Browser.close').catch(() => {});
    await Promise.race([ended, sleep(3000).then(() => this.process.kill('SIGKILL'))]);
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
