import { expect } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { Engine } from '../../src/engines/engine.ts';

/** Two clients, each with a node of its own, over one store: they see each other's locks, queues and tokens. Closes the engines. */
export async function seeEachOther(one: Engine, other: Engine): Promise<void> {
  const [a, b] = [open(one), open(other)];
  const first = await a.acquire('x');
  expect(await b.tryAcquire('x')).toBeNull();
  const waiting = b.acquire('x', { waitMs: 10_000 });
  for await (const state of a.watch('x', { everyMs: 10 })) if (state.waiting === 1) break;
  await first.release();
  const second = await waiting;
  expect(second.token).toBeGreaterThan(first.token);
  expect((await a.inspect('x')).holders.map((holder) => holder.token)).toEqual([second.token]);
  for (const each of [a, b, one, other]) await each.close();
}
