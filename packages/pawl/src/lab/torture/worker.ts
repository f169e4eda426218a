import { randomInt } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { StaleTokenError } from '../../fences/index.ts';
import { sqliteFence } from '../../fences/sqlite.ts';
import { type Grant, type Locker, type LockerSettings, type OpenStore, openLocker } from './locker.ts';
import { nowMs } from './machine-time.ts';

export interface WorkerSettings {
  readonly name: string;
  readonly locker: LockerSettings;
  readonly resource: string;
  readonly lock: string;
  readonly fenced: boolean;
  readonly ttlMs: number;
}

/** What a worker says. */
export type WorkerLine =
  | { readonly kind: 'ready' }
  /** It has read, and is going to write after `leftMs`. */
  | { readonly kind: 'between'; readonly grantedAtMs: number; readonly leftMs: number }
  /** The write is committed; or the fence refused it, or refused the token before the read; or it failed otherwise. */
  | { readonly kind: 'wrote'; readonly outcome: Outcome }
  | { readonly kind: 'released' }
  | { readonly kind: 'error'; readonly what: string };

type Outcome = 'done' | 'refused' | 'refused-raise' | 'failed';

/** The longest work between read and write, in ms. */
const MOST_WORK_MS = 15;
/** Who has no answer for so long connects anew, in ms. */
const PATIENCE_MS = 10_000;
/** So long to take leave of a server that may be away, in ms. */
const CLOSE_LIMIT_MS = 500;
const RETRY_MS = 50;

/**
 * Adds 1 to a counter, again and again, under a lock: reads, works a little, and writes. It prints what it does, one JSON a line, so that
 * the nemesis can strike between the two. It never returns; the process ends when its standard input does.
 */
export async function work(settings: WorkerSettings, openStore: OpenStore): Promise<never> {
  process.stdin.resume();
  process.stdin.on('end', () => process.exit(0));
  const increment = incrementOf(settings);
  let locker: Locker | undefined;
  let ready = false;
  for (;;) {
    try {
      locker ??= await within(openLocker(settings.locker, settings.ttlMs, openStore), (late) => late.close());
      if (!ready) say({ kind: 'ready' });
      ready = true;
      const grant = await within(locker.acquire(settings.lock), (late) => late.release());
      await increment(grant);
    } catch (error) {
      tell(error);
      // A peer's client may be of no use after an error, as where its session expired; Pawl's goes on by itself.
      if (settings.locker.kind === 'peer') {
        const closing = locker?.close().catch(() => {});
        locker = undefined;
        await Promise.race([closing, sleep(CLOSE_LIMIT_MS)]);
      }
      await sleep(RETRY_MS);
    }
  }
}

/** @returns what is done under one grant. */
function incrementOf(settings: WorkerSettings): (grant: Grant) => Promise<void> {
  const db = new DatabaseSync(settings.resource);
  // A process may be stopped in the middle of a transaction: nobody else can write to the resource then.
  db.exec('PRAGMA busy_timeout = 200; PRAGMA synchronous = OFF');
  const fence = settings.fenced ? sqliteFence(db) : undefined;
  const read = db.prepare('SELECT value FROM counter');
  const write = db.prepare('UPDATE counter SET value = ?');
  const log = db.prepare('INSERT INTO effect (token, worker, value) VALUES (?, ?, ?)');

  return async ({ lease, release }) => {
    const grantedAtMs = nowMs();
    let outcome: Outcome = 'done';
    let reading = true;
    try {
      fence?.raise(settings.lock, lease);
      const value = Number(read.get()?.value) + 1;
      const leftMs = randomInt(MOST_WORK_MS + 1);
      reading = false;
      say({ kind: 'between', grantedAtMs, leftMs });
      await sleep(leftMs);
      const effect = () => {
        write.run(value);
        log.run(lease?.token ?? null, settings.name, value);
      };
      if (fence === undefined) inTransaction(db, effect);
      else fence.transaction(settings.lock, lease, effect);
    } catch (error) {
      if (error instanceof StaleTokenError) outcome = reading ? 'refused-raise' : 'refused';
      else {
        outcome = 'failed';
        tell(error);
      }
    }
    say({ kind: 'wrote', outcome });
    await within(release(), () => {}).catch(tell);
    say({ kind: 'released' });
  };
}

function inTransaction(db: DatabaseSync, effect: () => void): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    effect();
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** @param undo what to do with an answer that comes too late. */
async function within<T>(answer: Promise<T>, undo: (late: T) => unknown): Promise<T> {
  const limit = new AbortController();
  const over = sleep(PATIENCE_MS, undefined, { signal: limit.signal }).then(() => {
    answer.then(undo).catch(() => {});
    throw new Error(`no answer within ${PATIENCE_MS} ms`);
  });
  try {
    return await Promise.race([answer, over]);
  } finally {
    over.catch(() => {});
    limit.abort();
  }
}

function tell(error: unknown): void {
  say({ kind: 'error', what: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
}

function say(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
