/**
 * One process with a node and some clients that take turns on a few locks, and write to a resource behind a fence while they hold
 * one. It prints what they saw, one JSON a line, and ends when its standard input does.
 */
import { randomInt } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/cli/store-address.ts';
import type { Lease } from '../../src/client/lease.ts';
import { open } from '../../src/client/open.ts';
import { connect } from '../../src/client/remote/connect.ts';
import { RemoteService } from '../../src/client/remote/remote-service.ts';
import { AcquireTimeoutError, HeldError } from '../../src/errors.ts';
import { StaleTokenError } from '../../src/fences/index.ts';
import { sqliteFence } from '../../src/fences/sqlite.ts';
import { LockNode } from '../../src/node/lock-node.ts';
import type { Asked, Said } from './recording.ts';

export interface WorkerSettings {
  readonly name: string;
  readonly address: string;
  readonly resource: string;
  readonly locks: readonly string[];
  readonly clients: number;
  readonly ttlMs: number;
}

const settings: WorkerSettings = JSON.parse(process.argv[2] ?? '{}');
let running = true;
process.stdin.resume();
process.stdin.on('end', () => {
  running = false;
});

/** The same clock in all processes of one machine. */
function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function say(line: Said): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

let calls = 0;

/** Says what is about to be asked: of a process that is killed meanwhile this is all that is known. */
function call(operation: Asked): { readonly id: number; answered(reply: string): void } {
  const id = calls++;
  say({ kind: 'call', id, operation, atMs: nowMs() });
  return { id, answered: (reply) => say({ kind: 'return', id, reply, atMs: nowMs() }) };
}

/** Asks the fence. What failed for another reason than the token was rolled back. */
function fenced(operation: Asked, act: () => void): void {
  const { answered } = call(operation);
  try {
    act();
    answered('accepted');
  } catch (error) {
    answered(error instanceof StaleTokenError ? 'refused' : 'unknown');
    throw error;
  }
}

const db = new DatabaseSync(settings.resource);
// A process may be stopped in the middle of a transaction: nobody else can write to the resource then.
db.exec('PRAGMA busy_timeout = 200; PRAGMA synchronous = OFF');
const fence = sqliteFence(db);
const read = db.prepare('SELECT value FROM counter WHERE name = ?');
const write = db.prepare('UPDATE counter SET value = ? WHERE name = ?');
const log = db.prepare('INSERT INTO effect (resource, token, value) VALUES (?, ?, ?)');

/** Listens in between clients and node: a client does not say in which session it asks, nor that it begins anew in another. */
for (const { prototype } of [LockNode, RemoteService]) {
  const { acquire } = prototype;
  prototype.acquire = function (id, locks, options) {
    say({ kind: 'sent', id: Number(options.owner.call), session: id.session, atMs: nowMs() });
    return acquire.call(this, id, locks, options);
  };
}

const remote = settings.address.startsWith('http');
const store = remote ? undefined : await openStore(settings.address);
const pawl = store === undefined ? await connect(settings.address) : open(store.engine);
say({ kind: 'ready' });

async function work(client: string): Promise<void> {
  while (running) {
    const lock = settings.locks[randomInt(settings.locks.length)] ?? '';
    // Some do not wait, so that there are refusals.
    const waits = randomInt(4) > 0;
    const acquire = call({ kind: 'acquire', lock, client, waits });
    const askedAtMs = nowMs();
    try {
      const owner = { call: String(acquire.id) };
      const acquiring = pawl.acquire(lock, { ttlMs: settings.ttlMs, waitMs: waits ? 2000 : 0, owner });
      acquiring.catch((error) => acquire.answered(failureOf(error)));
      const lease = await acquiring;
      const grantedAtMs = nowMs();
      const token = String(lease.token);
      acquire.answered(token);
      // A process that was stopped may hear of a grant long after its session ended.
      let heldUntilMs: number | undefined;
      const look = () => {
        lease.assertHeld();
        heldUntilMs = nowMs();
      };
      try {
        look();
        fenced({ kind: 'raise', resource: lock, token, client }, () => fence.raise(lock, lease));
        const before = Number(read.get(lock)?.value);
        for (let step = 0; step < 3; step += 1) {
          await sleep(randomInt(40));
          // Half of them do not look and write as zombies do: the fence has to refuse those that come too late.
          if (randomInt(2) === 0) look();
        }
        fenced({ kind: 'write', resource: lock, token, client }, () =>
          fence.transaction(lock, lease, () => {
            write.run(before + 1, lock);
            log.run(lock, lease.token, before + 1);
          }),
        );
        look();
      } finally {
        if (heldUntilMs !== undefined)
          say({ kind: 'grant', id: acquire.id, lock, token, client, askedAtMs, grantedAtMs, heldUntilMs });
        await release(lease, acquire.id, client).catch(tell);
      }
    } catch (error) {
      tell(error);
      await sleep(20);
    }
  }
}

/** As the history has it. */
function failureOf(error: unknown): string {
  if (error instanceof HeldError) return 'refused';
  return error instanceof AcquireTimeoutError ? 'timedOut' : 'unknown';
}

async function release(lease: Lease, acquire: number, client: string): Promise<void> {
  const { answered } = call({ kind: 'release', acquire, client });
  await lease.release();
  answered('released');
}

function tell(error: unknown): void {
  const code = (error as { code?: unknown } | undefined)?.code;
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const known = (typeof code === 'string' && code.startsWith('PAWL_')) || said.includes('database is locked');
  say({ kind: 'error', code: known ? String(code) : `unexpected: ${said}` });
}

await Promise.all(Array.from({ length: settings.clients }, (_, i) => work(`${settings.name}.${i}`)));
await pawl.close().catch(tell);
await store?.close();
db.close();
say({ kind: 'done' });
process.exit(0);
