import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryFaults, MemoryStore, memoryEngine } from '../../src/engines/memory/index.ts';
import { hashToken } from '../../src/server/index.ts';
import { BrowserPage, CHROMIUM } from './browser.ts';
import { ask, client, running, until } from './setup.ts';

const run = promisify(execFile);
const folder = fileURLToPath(new URL('../../dashboard/', import.meta.url));
const root = fileURLToPath(new URL('../../../../', import.meta.url));
const tsc = join(root, 'node_modules/.bin/tsc');
const files = readdirSync(folder).filter((file) => file !== 'tsconfig.json');
const HOSTILE = `<img src=x onerror="document.title='pwned'">`;

describe('the files of the dashboard', () => {
  it.each(['', ...files.filter((file) => file !== 'index.html').map((file) => `dashboard/${file}`)])(
    '/%s is served to strangers, with headers that let nothing else run',
    async (path) => {
      const auth = [{ name: 'a', sha256: hashToken('a'), permissions: [] }];
      const { server } = await running({ auth });
      const response = await fetch(`${server.url}/${path}`);
      expect(response.status).toBe(200);
      const type = { html: 'text/html', css: 'text/css', js: 'text/javascript', svg: 'image/svg+xml' };
      const ending = (path.split('.')[1] ?? 'html') as keyof typeof type;
      expect(response.headers.get('content-type')).toBe(`${type[ending]}; charset=utf-8`);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('cache-control')).toBe('no-store');
      const policy = (response.headers.get('content-security-policy') ?? '').split('; ');
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
      ])
        expect(policy).toContain(rule);
      expect(policy.join()).not.toMatch(/unsafe|\*|https?:|data:/);
      const text = await response.text();
      // Nothing from elsewhere, nothing inline, nothing taken for HTML.
      expect(text.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:\/\//);
      expect(text).not.toMatch(
        /<script>|<style|style="|\son\w+="|innerHTML|insertAdjacentHTML|document\.write/,
      );
    },
  );

  it('a HEAD has the length and no body; other methods and files there are none', async () => {
    const { server } = await running();
    const head = await fetch(server.url, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(1000);
    expect((await ask(server.url, 'POST', '/', {})).status).toBe(405);
    for (const path of ['/dashboard', '/dashboard/', '/dashboard/tsconfig.json', '/index.html'])
      expect([path, (await ask(server.url, 'GET', path)).status]).toEqual([path, 404]);
    for (const path of [
      '/dashboard/..%2fpackage.json',
      '/dashboard/../package.json',
      '/dashboard/%00page.js',
    ])
      expect([path, await plainStatus(server.port, path)]).toEqual([path, 404]);
  });

  it('the engine and what it guarantees are told to whoever may ask', async () => {
    const auth = [{ name: 'a', sha256: hashToken('a'), permissions: [] }];
    const { server, engine } = await running({ auth });
    expect((await ask(server.url, 'GET', '/v1/guarantees')).status).toBe(401);
    const answer = await ask(server.url, 'GET', '/v1/guarantees', undefined, { authorization: 'Bearer a' });
    expect(answer).toMatchObject({ status: 200, body: engine.guarantees });
  });

  it('are all in the package', async () => {
    const cwd = join(folder, '..');
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd });
    const packed = new Set([...stdout.matchAll(/"path": "([^"]+)"/g)].map(([, path]) => path));
    for (const file of files) expect(packed).toContain(`dashboard/${file}`);
    expect(packed).not.toContain('dashboard/tsconfig.json');
  });

  it('are served by what is built and packed as by the sources', async () => {
    const at = mkdtempSync(join(root, 'test', '.snippets-dashboard-'));
    onTestFinished(() => rmSync(at, { recursive: true, force: true }));
    const installed = join(at, 'node_modules/pawl');
    // That it is sound, the test of the package shows; here it has to run.
    const outDir = join(installed, 'dist');
    const quickly = ['--noCheck', '--declaration', 'false'];
    await run(tsc, ['-p', join(folder, '../tsconfig.build.json'), '--outDir', outDir, ...quickly]);
    for (const part of ['package.json', 'dashboard'])
      cpSync(join(folder, '..', part), join(installed, part), { recursive: true });
    const program = `import { memoryEngine } from 'pawl/engines/memory';
import { serve } from 'pawl/server';
const server = await serve({ engine: memoryEngine(), port: 0, log() {} });
for (const path of ['/', '/dashboard/page.js']) console.log((await fetch(server.url + path)).status);
process.exit();`;
    writeFileSync(join(at, 'program.mjs'), program);
    expect((await run(process.execPath, ['program.mjs'], { cwd: at })).stdout).toBe('200\n200\n');
  }, 60_000);

  it('have the types of a browser', async () => {
    await expect(run(tsc, ['-p', folder])).resolves.toMatchObject({ stdout: '' });
  }, 60_000);
});

describe.skipIf(CHROMIUM === undefined)('in a browser (where there is Chromium)', () => {
  it('shows what is held, as text whatever it says, by pages and by prefix', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    const lease = await pawl.acquire(HOSTILE, { owner: { text: '<b id=bold>x</b>' } });
    await pawl.breakLock(HOSTILE, { token: lease.token, reason: '<i id=why>stuck</i>', by: 'me' });
    const again = await pawl.acquire(HOSTILE, { owner: { text: '<b id=bold>x</b>' } });
    for (let i = 0; i < 120; i += 1) await pawl.acquire(`invoice:${i}`);
    const page = await BrowserPage.open(server.url);
    await until(async () => (await page.text('#table tbody')).includes(HOSTILE));
    const first = await page.text('#table tbody');
    expect(first).toContain('<b id=bold>x</b>');
    expect(first).toContain(String(again.token));
    expect(await page.text('#ready')).toBe('Ready');
    await until(async () => (await page.text('#guarantees')).includes('memory'));
    expect(await page.text('#figures')).toMatch(/Locks in use\s+100\+/);
    await until(async () => /Sessions\s+1\b/.test(await page.text('#figures')));

    await page.click('#table a');
    await until(async () => (await page.text('#state')).includes('<i id=why>stuck</i>'));
    expect(await page.text('#lock-title')).toBe(HOSTILE);
    await page.click('#close');
    await until(async () => (await page.text('#lock')) === '');

    await page.click('#next');
    await until(async () => (await page.text('#page')) === 'Page 2');
    await until(async () => (await rows(page)) === 21);
    await page.click('#back');
    await until(async () => (await rows(page)) === 100);
    await page.enter('#prefix', 'invoice:11');
    await until(async () => (await rows(page)) === 11);
    expect(await page.text('#figures')).toMatch(/Locks in use\s+11\b/);
    await page.enter('#prefix', '<u id=none>');
    await until(async () => (await page.text('#empty')).includes('“<u id=none>”'));

    const harm = "document.querySelector('#bold, #why, #none, img[src=x]') !== null";
    expect([await page.evaluate(harm), await page.evaluate('document.title')]).toEqual([false, 'Pawl']);
  }, 60_000);

  it('asks for a token where one is wanted, says what it may not read, and does not ask in vain', async () => {
    const permissions = [{ prefix: 'app/', rights: ['read', 'acquire'] as const }];
    const auth = [{ name: 'app', sha256: hashToken('s3cret'), permissions }];
    const { server, entries } = await running({ auth });
    const pawl = await client(server.url, { token: 's3cret' });
    await pawl.acquire('app/one');
    const page = await BrowserPage.open(server.url);
    const trouble = () => page.text('#trouble');
    const use = async (token: string) => {
      await page.enter('#token', token);
      await page.click('#authentication button');
    };
    await until(async () => (await trouble()).includes('Enter a token'));
    await use('guess');
    await until(async () => (await trouble()).includes('does not accept this token'));
    const refusals = () => entries.filter(({ event }) => event === 'authenticationFailed').length;
    const before = refusals();
    expect(before).toBe(2);
    await use('s3cret');
    await until(async () => (await trouble()).includes('no right to read all locks below ""'));
    await until(async () => (await page.text('#guarantees')).includes('memory'));
    await page.enter('#prefix', 'app/');
    await until(async () => (await page.text('#table tbody')).includes('app/one'));
    await until(async () => (await trouble()) === '');
    await page.evaluate('location.reload()');
    // The token is kept in the tab, and nowhere else.
    await until(async () => (await trouble()).includes('no right'));
    expect(await page.evaluate('localStorage.length + document.cookie.length + sessionStorage.length')).toBe(
      1,
    );
    await page.click('#forget');
    await until(async () => (await trouble()).includes('Enter a token'));
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    expect(refusals()).toBe(before + 1);
  }, 60_000);

  it('L5: says that the engine cannot be reached, and that the server is gone', async () => {
    const faults = new MemoryFaults();
    const { server } = await running({ engine: memoryEngine({ store: new MemoryStore(), faults }) });
    const pawl = await client(server.url);
    await pawl.acquire('x');
    const page = await BrowserPage.open(server.url);
    await until(async () => (await page.text('#table tbody')).includes('x'));
    faults.unreachable = true;
    await until(async () => (await page.text('#ready')) === 'Not ready: the engine cannot be reached');
    await until(async () => (await page.text('#trouble')).includes('cannot serve'));
    // What was seen last is still there to look at.
    expect(await page.text('#table tbody')).toContain('x');
    faults.unreachable = false;
    await until(async () => (await page.text('#trouble')) === '');
    expect(await page.text('#ready')).toBe('Ready');
    await server.close();
    await until(async () => (await page.text('#ready')) === 'Unreachable');
    expect(await page.text('#trouble')).toMatch(/cannot be reached/);
  }, 60_000);
});

function rows(page: BrowserPage): Promise<number> {
  return page.evaluate("document.querySelectorAll('#table tbody').length");
}

/** The status of a GET whose path is sent as it is. */
function plainStatus(port: number, path: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  request({ host: '127.0.0.1', port, path }, (response) => {
    response.resume();
    resolve(response.statusCode);
  })
    .on('error', reject)
    .end();
  return promise;
}
