import { expect } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { Engine } from '../../src/engines/engine.ts';

const NODES = 4;
const WAITERS = 1000;

/** What one release costs while 1,000 wait, on several nodes: the wakes that the engine delivers, and the entries it writes. */
export async function oneReleaseWakesOne(openEngine: () => Promise<Engine>): Promise<void> {
  let delivered = 0;
  let puts = 0;
  const engines: Engine[] = [];
  for (let i = 0; i < NODES; i += 1) {
    engines.push(
      counted(await openEngine(), {
        onWake: () => {
          delivered += 1;
        },
        onPuts: (count) => {
          puts += count;
        },
      }),
    );
  }
  const pawls = engines.map((engine) => open(engine));
  const [holder] = pawls;
  if (holder === undefined) throw new Error('There is no node.');
  const giveUp = new AbortController();
  const settings = { ttlMs: 30_000, signal: giveUp.signal };
  const held = await holder.acquire('x', settings);
  const acquires = Array.from({ length: WAITERS }, (_, i) => pawls[i % NODES]?.acquire('x', settings));
  const waiting = acquires.map((acquire) => acquire?.catch(() => undefined));
  await expect
    .poll(async () => (await holder.inspect('x')).waiting, { timeout: 60_000, interval: 100 })
    .toBe(WAITERS);
  // The last of them stand in the store before their commits are answered, and only then are counted.
  await new Promise((resolve) => setTimeout(resolve, 500));
  [delivered, puts] = [0, 0];
  await held.release();
  const next = await Promise.race(waiting);
  expect(next?.token).toBeGreaterThan(held.token);
  // Time for wakes that should not have been sent.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(delivered).toBe(1);
  // The lock, the request that was granted; of the holder's nothing is left.
  expect(puts).toBeLessThanOrEqual(3);
  giveUp.abort();
  await Promise.all(waiting);
  await next?.release();
  for (const each of [...pawls, ...engines]) await each.close();
}

function counted(
  engine: Engine,
  { onWake, onPuts }: { onWake: () => void; onPuts: (count: number) => void },
): Engine {
  return new Proxy(engine, {
    get(target, property) {
      if (property === 'subscribe') {
        const subscribe: Engine['subscribe'] = (inbox, listener) =>
          target.subscribe(inbox, (message, version) => {
            onWake();
            listener(message, version);
          });
        return subscribe;
      }
      if (property === 'commit') {
        const commit: Engine['commit'] = async (batch) => {
          const results = await target.commit(batch);
          for (const [i, { puts }] of batch.entries()) {
            if (results[i]?.kind === 'committed') onPuts(puts.length);
          }
          return results;
        };
        return commit;
      }
      const value = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
