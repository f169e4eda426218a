/**
 * A worker of the demonstration: a real process that adds to an account under the lock. Called with a task as JSON; tells its
 * parent by IPC how it goes on.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Lease } from '../../client/lease.ts';
import { open } from '../../client/open.ts';
import { sqliteEngine } from '../../engines/sqlite/index.ts';
import { LeaseLostError } from '../../errors.ts';
import { StaleTokenError } from '../../fences/index.ts';
import { sqliteFence } from '../../fences/sqlite.ts';
import type { Report, Task } from './story.ts';

const task: Task = JSON.parse(process.argv[2] ?? '{}');
const engine = await sqliteEngine({ path: task.locks });
const pawl = open(engine);
const ledger = new DatabaseSync(task.ledger);
const fence = sqliteFence(ledger);

try {
  await pawl.withLock('account', { ttlMs: task.ttlMs }, work);
} catch (error) {
  if (!(error instanceof LeaseLostError)) throw error;
  // The fence has refused the write, so nothing was done: do it again. Without the fence it is done, and too late to undo.
  if (error.cause instanceof StaleTokenError) await pawl.withLock('account', { ttlMs: task.ttlMs }, work);
  else await tell({ kind: 'lost', token: error.token.toString() });
}
ledger.close();
await pawl.close();
await engine.close();
process.disconnect();

async function work(lease: Lease): Promise<void> {
  const token = lease.token.toString();
  if (task.fenced) fence.raise('account', lease);
  const balance = readBalance();
  await tell({ kind: 'read', token, balance });
  lease.assertHeld();
  if (task.gate !== undefined && !existsSync(task.gate)) waitAt(task.gate, { kind: 'checked', token });
  const next = balance + task.adds;
  try {
    if (task.fenced) fence.transaction('account', lease, () => writeBalance(next));
    else writeBalance(next);
  } catch (error) {
    if (!(error instanceof StaleTokenError)) throw error;
    await tell({ kind: 'refused', token, highest: error.highest.toString() });
    throw error;
  }
  await tell({ kind: 'wrote', token, balance: next });
}

/**
 * Tells the parent, which then stops this process, and blocks it. From the check to the write nothing yields, so no timer can
 * tell this process that its lease is over: like a pause of the garbage collector, it comes between the two.
 */
function waitAt(gate: string, report: Report): void {
  // Not awaited, since that would yield. A short message is with the parent before this returns.
  process.send?.(report);
  while (!existsSync(gate)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

function readBalance(): number {
  return Number(ledger.prepare('SELECT balance FROM account').get()?.balance);
}

function writeBalance(balance: number): void {
  ledger.prepare('UPDATE account SET balance = ?').run(balance);
}

function tell(report: Report): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(report, (error: Error | null) => (error ? reject(error) : resolve()));
  });
}
