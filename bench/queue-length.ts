/**
 * L4: what a grant costs with 10 and with 10,000 waiters in the queue, on the SQLite engine. Both queues live in one store
 * and are measured in turns, so that whatever else the machine does hits both alike. Run nothing beside it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqliteEngine } from '../packages/pawl/src/engines/sqlite/index.ts';
import { LockNode } from '../packages/pawl/src/node/lock-node.ts';

const GRANTS = 1000;
const ROUNDS = 10;
const LIMIT = 1.5;

const folder = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
const engine = await sqliteEngine({ path: join(folder, 'pawl.db') });
const node = new LockNode(engine);
const session = await node.openSession(600_000);
const settings = { wait: true, owner: {}, lockDelayMs: 0, barging: false };

/** A lock with a queue that stays as long as it is: whoever is granted releases, and queues again behind the others. */
class Queue {
  readonly #name: string;
  #holder: { request: string; token: bigint } | undefined;
  #next = 0;
  #onGrant: (() => void) | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  granted(request: string, token: bigint): void {
    this.#holder = { request, token };
    this.#onGrant?.();
  }

  async join(): Promise<void> {
    const request = `${this.#name}/${this.#next++}`;
    const answer = await node.acquire(
      { session, request },
      [{ name: this.#name, mode: 'exclusive', permits: null }],
      settings,
    );
    if (answer.kind === 'granted') this.granted(request, answer.grants[0]?.token ?? 0n);
  }

  /** One release, the grant that it hands over, and one newcomer at the end of the queue. */
  async handOver(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onGrant = resolve;
    const holder = this.#holder;
    if (holder === undefined) throw new Error('nobody holds the lock');
    await node.release(
      { session, request: holder.request },
      [{ name: this.#name, token: holder.token }],
      true,
    );
    await promise;
    await this.join();
  }
}

const queues = new Map([10, 10_000].map((length) => [length, new Queue(`queue-${length}`)]));
node.listen(session, (event) => {
  if (event.kind !== 'granted') return;
  const length = Number(event.request.split('/')[0]?.slice('queue-'.length));
  queues.get(length)?.granted(event.request, event.grants[0]?.token ?? 0n);
});
for (const [length, queue] of queues) {
  for (let joined = 0; joined <= length; joined += 500) {
    await Promise.all(Array.from({ length: Math.min(500, length + 1 - joined) }, () => queue.join()));
  }
}

const spentMs = new Map<number, number>();
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const [length, queue] of queues) {
    const startedAt = performance.now();
    for (let i = 0; i < GRANTS / ROUNDS; i += 1) await queue.handOver();
    // The first round warms up.
    if (round > 0) spentMs.set(length, (spentMs.get(length) ?? 0) + performance.now() - startedAt);
  }
}

for (const [length, ms] of spentMs) {
  console.log(
    `${GRANTS} grants with ${String(length).padStart(6)} waiters: ${(ms / GRANTS).toFixed(3)} ms each`,
  );
}
const ratio = (spentMs.get(10_000) ?? 0) / (spentMs.get(10) ?? 1);
console.log(`ratio ${ratio.toFixed(2)} (to reach: at most ${LIMIT})`);

await node.close();
await engine.close();
rmSync(folder, { recursive: true, force: true });
process.exitCode = ratio <= LIMIT ? 0 : 1;
