import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { until } from './setup.ts';

/** The browser of this machine, or `undefined` where it has none. */
export const CHROMIUM = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find(runs);

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--remote-debugging-port=0',
];

/** A page in a browser without a window, which the end of the test closes. */
export class BrowserPage {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, (message: Message) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => {
      const message: Message = JSON.parse(data.toString());
      if (message.id !== undefined) this.#answers.get(message.id)?.(message);
    });
  }

  static async open(url: string): Promise<BrowserPage> {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-browser-'));
    const child = spawn(String(CHROMIUM), [...FLAGS, `--user-data-dir=${folder}`, url], { stdio: 'ignore' });
    onTestFinished(async () => {
      await end(child);
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    });
    const told = join(folder, 'DevToolsActivePort');
    await until(() => existsSync(told) && readFileSync(told, 'utf8').includes('\n'));
    const [port] = readFileSync(told, 'utf8').split('\n');
    let address: string | undefined;
    await until(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/json/list`);
      const pages = (await response.json()) as { url: string; webSocketDebuggerUrl: string }[];
      address = pages.find((page) => page.url.startsWith(url))?.webSocketDebuggerUrl;
      return address !== undefined;
    });
    const socket = new WebSocket(String(address));
    onTestFinished(() => socket.terminate());
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    return new BrowserPage(socket);
  }

  /** What an expression in the page comes to; `undefined` while there is no page. */
  async evaluate<T>(expression: string): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<Message>();
    this.#last += 1;
    this.#answers.set(this.#last, resolve);
    const params = { expression, returnByValue: true, awaitPromise: true };
    this.#socket.send(JSON.stringify({ id: this.#last, method: 'Runtime.evaluate', params }));
    const { result } = await promise;
    if (result?.exceptionDetails !== undefined) throw new Error(JSON.stringify(result.exceptionDetails));
    return result?.result?.value as T;
  }

  /** The text that is seen of an element; nothing while the page loads. */
  async text(selector: string): Promise<string> {
    const found = `document.querySelector(${JSON.stringify(selector)})`;
    return (
      (await this.evaluate<string | undefined>(`${found}?.checkVisibility() ? ${found}.innerText : ''`)) ?? ''
    );
  }

  click(selector: string): Promise<void> {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
  }

  async enter(selector: string, text: string): Promise<void> {
    const [where, what] = [selector, text].map((each) => JSON.stringify(each));
    await this.evaluate(
      `{ const field = document.querySelector(${where}); field.value = ${what}; field.dispatchEvent(new Event('input')); }`,
    );
  }
}

interface Message {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value?: unknown }; readonly exceptionDetails?: object };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

function runs(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
