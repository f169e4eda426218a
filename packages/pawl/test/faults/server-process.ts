import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endProcess, freePort } from '../engines/server-tools.ts';

const PAWL = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));

/** `pawl serve` as a process, to be killed and started again. */
export class ServerProcess {
  readonly #db: string;
  #port = 0;
  #process: ChildProcess | undefined;

  constructor(db: string) {
    this.#db = db;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Resolves once it serves. */
  async start(): Promise<void> {
    if (this.#port === 0) this.#port = await freePort();
    const args = [PAWL, 'serve', '--port', `${this.#port}`, '--db', this.#db, '--log', 'error'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => resolve());
      child.once('exit', (code) => reject(new Error(`The server ended with ${code} before it served.`)));
    });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#process !== undefined) await endProcess(this.#process, signal);
    this.#process = undefined;
  }
}
