import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';

/** What a worker is asked to do: add to the account in row 0, under a lock. */
export interface PausedTask {
  readonly database: 'postgres' | 'mysql' | 'sqlite' | 'redis' | 'file' | 'http' | 's3' | 'dynamodb';
  readonly address: string;
  readonly locks: string;
  readonly adds: number;
  readonly fenced: boolean;
  readonly ttlMs: number;
  /** A file to wait for between the look at the lease and the write. */
  readonly gate?: string;
}

export type PausedReport = 'checked' | 'wrote' | 'refused';

interface Account {
  readonly address: string;
  balance(): Promise<number>;
  /** Sets the account to 100. */
  reset(): Promise<void>;
}

/** Long enough for a busy machine to keep a lease that nobody stopped. */
const TTL_MS = 1500;

/** The story of two real processes, one of which is stopped for longer than its lease. */
export function tellPauses(database: PausedTask['database'], account: () => Account): void {
  const children = new Set<ChildProcess>();
  let folder = '';
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    children.clear();
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });

  const start = (task: PausedTask) => {
    const child = fork(
      fileURLToPath(new URL('./paused-worker.ts', import.meta.url)),
      [JSON.stringify(task)],
      {
        execArgv: ['--disable-warning=ExperimentalWarning', '--conditions=pawl-source'],
      },
    );
    children.add(child);
    const told: PausedReport[] = [];
    child.on('message', (report: PausedReport) => told.push(report));
    const ended = Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
    return { child, told, ended };
  };

  const tell = async (fenced: boolean) => {
    const { address, reset, balance } = account();
    await reset();
    folder = mkdtempSync(join(tmpdir(), 'pawl-pauses-'));
    const shared = { database, address, locks: join(folder, 'locks.db'), fenced, ttlMs: TTL_MS };
    const gate = join(folder, 'gate');
    const a = start({ ...shared, adds: 200, gate });
    while (!a.told.includes('checked')) await Promise.race([once(a.child, 'message'), a.ended]);
    a.child.kill('SIGSTOP');
    const b = start({ ...shared, adds: 50 });
    await b.ended;
    expect(b.told).toEqual(['checked', 'wrote']);
    writeFileSync(gate, '');
    a.child.kill('SIGCONT');
    await a.ended;
    return { a: a.told, balance: await balance() };
  };

  it('S7: the late write of a process that was stopped for longer than its lease is refused', async () => {
    expect(await tell(true)).toEqual({ a: ['checked', 'refused'], balance: 150 });
  }, 60_000);

  it('without the fence the same process overwrites what came after it', async () => {
    expect(await tell(false)).toEqual({ a: ['checked', 'wrote'], balance: 300 });
  }, 60_000);
}
