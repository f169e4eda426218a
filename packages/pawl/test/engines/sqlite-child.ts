/** A process beside the test's own: `node sqlite-child.ts <command> <path> …`. */

import type { ConditionalWrite } from '../../src/engines/engine.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { isPawlError } from '../../src/errors.ts';

const nothing: ConditionalWrite = { guards: [], alive: [], puts: [], deletes: [], wakes: [] };

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const commands: Record<string, (path: string, ...args: string[]) => Promise<void>> = {
  /** Adds 1 to the value of "counter", so many times, each as a read and a conditional write. */
  async increment(path, times) {
    const engine = await sqliteEngine({ path });
    for (let done = 0; done < Number(times); ) {
      const { entries } = await engine.read({ keys: ['counter'], ranges: [] });
      const entry = entries.get('counter');
      const guards = [{ key: 'counter', version: entry?.version ?? null }];
      const puts = [{ key: 'counter', value: String(Number(entry?.value ?? 0) + 1) }];
      const [result] = await engine.commit([{ ...nothing, guards, puts }]);
      if (result?.kind === 'committed') done += 1;
    }
    await engine.close();
  },

  /** Writes new keys for ever, three at once, and prints each with its version once it is acknowledged. */
  async write(path, prefix) {
    const engine = await sqliteEngine({ path });
    const worker = async (name: string) => {
      for (let i = 0; ; i++) {
        const key = `${prefix}/${name}/${i}`;
        const [result] = await engine.commit([{ ...nothing, puts: [{ key, value: `value of ${key}` }] }]);
        if (result?.kind === 'committed') print(`${key} ${result.version}`);
      }
    };
    await Promise.all(['a', 'b', 'c'].map(worker));
  },

  /** Writes large values until that fails, and prints what was acknowledged and then how it failed. */
  async fill(path) {
    const engine = await sqliteEngine({ path });
    try {
      for (let i = 0; ; i++) {
        const key = `large/${i}`;
        const [result] = await engine.commit([{ ...nothing, puts: [{ key, value: 'x'.repeat(20_000) }] }]);
        if (result?.kind === 'committed') print(`${key} ${result.version}`);
      }
    } catch (error) {
      print(isPawlError(error) ? `${error.code} ${error.outcome}` : String(error));
    }
  },

  /** Sends a wake. */
  async wake(path, inbox = '', message = '') {
    const engine = await sqliteEngine({ path });
    await engine.commit([
      { ...nothing, puts: [{ key: 'woken', value: message }], wakes: [{ inbox, message }] },
    ]);
    await engine.close();
  },

  /** Opens a session and has no time to end it. */
  async die(path, session = '', ttlMs) {
    const engine = await sqliteEngine({ path });
    print(String(await engine.openSession(session, Number(ttlMs))));
    process.kill(process.pid, 'SIGKILL');
  },

  /** Uses all that has a timer and leaves it open. */
  async leave(path) {
    const engine = await sqliteEngine({ path });
    engine.subscribe('inbox', () => {});
    engine.watchEndings(() => {});
    await engine.commit([{ ...nothing, puts: [{ key: 'left', value: 'open' }] }]);
    print('left');
  },

  /** The same, but closes it. */
  async close(path) {
    const engine = await sqliteEngine({ path });
    engine.subscribe('inbox', () => {});
    engine.watchEndings(() => {});
    await engine.openSession('session', 60_000);
    await engine.close();
    print('closed');
  },

  /** Tries to open each path, as somebody without any rights, and prints how it failed. */
  async unprivileged(...paths) {
    // Root may do everything; who is not root has no other user's rights anyway.
    if (process.getuid?.() === 0) {
      process.setgid?.(65534);
      process.setuid?.(65534);
    }
    for (const path of paths) {
      try {
        const engine = await sqliteEngine({ path });
        await engine.close();
        print('opened');
      } catch (error) {
        print(isPawlError(error) ? `${error.code} ${error.message}` : String(error));
      }
    }
  },
};

const [command = '', path = '', ...args] = process.argv.slice(2);
await commands[command]?.(path, ...args);
