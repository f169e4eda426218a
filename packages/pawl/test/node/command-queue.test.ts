import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/core/commands.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { CommandQueue } from '../../src/node/command-queue.ts';
import { type Pending, touchOf } from '../../src/node/grouping.ts';
import { granted, NodeSetup, newRequest } from './setup.ts';

function promote(name: string, ...furtherNames: string[]): Pending {
  const command: Command = { kind: 'promote', name };
  return { command, touch: touchOf(command, furtherNames) };
}

describe('the queue of commands', () => {
  it('gives everything in order where nothing is under way', () => {
    const queue = new CommandQueue<Pending>();
    const items = ['a', 'b', 'a', 'c'].map((name) => promote(name));
    for (const item of items) queue.add(item);
    expect(queue.take(3)).toEqual(items.slice(0, 3));
    expect(queue.length).toBe(1);
  });

  it('keeps back what touches something under way, and what comes behind that', () => {
    const queue = new CommandQueue<Pending>();
    const [a, b, a2, both, b2, c] = [
      promote('a'),
      promote('b'),
      promote('a'),
      promote('a', 'b'),
      promote('b'),
      promote('c'),
    ];
    queue.add(a);
    const first = queue.take(10);
    for (const item of [a2, b, both, b2, c]) queue.add(item);
    // `both` waits for a, and b2 must not overtake it.
    const second = queue.take(10);
    expect(second).toEqual([b, c]);
    expect(queue.take(10)).toEqual([]);
    queue.done(first);
    expect(queue.take(10)).toEqual([a2]);
    queue.done(second);
    expect(queue.length).toBe(2);
    queue.putBack([c]);
    expect(queue.take(1)).toEqual([c]);
  });
});

describe('a node over a store that takes several commits at once', () => {
  const several = (engine: Engine): Engine =>
    new Proxy(engine, {
      get(target, property) {
        if (property === 'commitsAtOnce') return 4;
        const value = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });

  it('S1, S2: commits that overtake each other leave every lock in order', async () => {
    const setup = new NodeSetup(undefined, {}, several);
    let underWay = 0;
    let most = 0;
    let calls = 0;
    setup.faults.onCall = (method) => {
      if (method !== 'commit') return undefined;
      calls += 1;
      underWay += 1;
      most = Math.max(most, underWay);
      const delayMs = (calls * 7) % 13;
      void setup.time.clock().setTimer(delayMs, () => {
        underWay -= 1;
      });
      return { delayMs };
    };
    const session = await driven(setup, setup.openSession());
    const held = new Set<string>();
    const last = new Map<string, bigint>();
    const work = async (client: number) => {
      for (let round = 0; round < 6; round += 1) {
        const name = `lock-${(client * 5 + round) % 60}`;
        const id = newRequest(session);
        const answer = await setup.acquireAs(id, [{ name, mode: 'exclusive', permits: null }]);
        if (answer.kind !== 'granted') continue;
        const grant = granted(answer);
        expect(held.has(name)).toBe(false);
        held.add(name);
        expect(grant.token).toBeGreaterThan(last.get(name) ?? 0n);
        last.set(name, grant.token);
        await undefined;
        held.delete(name);
        await setup.node.release(id, [grant], true);
      }
    };
    await driven(setup, Promise.all(Array.from({ length: 200 }, (_, client) => work(client))));
    expect(most).toBeGreaterThan(1);
    expect(last.size).toBe(60);
  });
});

/** What `work` comes to while time passes. */
async function driven<T>(setup: NodeSetup, work: Promise<T>): Promise<T> {
  let done = false;
  const watched = work.finally(() => {
    done = true;
  });
  watched.catch(() => {});
  while (!done) await setup.time.advance(1);
  return watched;
}
