import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/core/commands.ts';
import { lockKey, requestKey } from '../../src/core/names.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { groupByTouch, touchOf } from '../../src/node/grouping.ts';
import { granted, NodeSetup, newRequest } from './setup.ts';

describe('the node', () => {
  it('what gathers during one commit goes together in the next', async () => {
    const { node, engine, ...rest } = new NodeSetup();
    const setup = Object.assign(rest, { node, engine });
    const session = await node.openSession(600_000);
    setup.faults.calls.set('commit', 0);
    const answers = await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        node.acquire(newRequest(session), [{ name: `lock-${i}`, mode: 'exclusive', permits: null }], {
          wait: false,
          owner: {},
          lockDelayMs: 0,
          barging: false,
        }),
      ),
    );
    expect(answers.every(({ kind }) => kind === 'granted')).toBe(true);
    expect(setup.faults.calls.get('commit')).toBeLessThanOrEqual(2);
  });

  it('a record that is corrupt fails those who need it, and nobody else', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    await setup.engine.commit([
      {
        guards: [],
        alive: [],
        puts: [{ key: lockKey('broken'), value: '{"holders": "nobody"}' }],
        deletes: [],
        wakes: [],
      },
    ]);
    const other = new NodeSetup(setup);
    // Held elsewhere, so that this node has to read it, together with what is broken.
    await other.acquire(await other.openSession(), 'held');
    const X = { mode: 'exclusive', permits: null } as const;
    const [bad, both, good, held] = await Promise.allSettled([
      setup.acquire(session, 'broken'),
      setup.acquireAs(newRequest(session), [
        { name: 'broken', ...X },
        { name: 'sound', ...X },
      ]),
      setup.acquire(session, 'sound'),
      setup.acquire(session, 'held'),
    ]);
    const corrupt = { status: 'rejected', reason: { code: 'PAWL_STORE_CORRUPT' } };
    expect([bad, both]).toMatchObject([corrupt, corrupt]);
    expect(good).toMatchObject({ status: 'fulfilled', value: { kind: 'granted' } });
    expect(held).toMatchObject({ status: 'fulfilled', value: { kind: 'held' } });
  });

  it('a request whose record is corrupt fails alone: its lock and all other requests go on', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const [broken, sound] = [newRequest(session), newRequest(session)];
    const record = { key: requestKey(session, broken.request), value: '{"state":"held"}' };
    await setup.engine.commit([{ guards: [], alive: [], puts: [record], deletes: [], wakes: [] }]);
    const [bad, good] = await Promise.allSettled([
      setup.node.cancel(broken, ['x'], false),
      setup.node.cancel(sound, ['x'], false),
    ]);
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'PAWL_STORE_CORRUPT' } });
    expect(good).toMatchObject({ status: 'fulfilled', value: { kind: 'cancelled' } });
    expect((await setup.acquire(session, 'x')).kind).toBe('granted');
  });

  it('commands that touch a common lock or request are decided together, and all others apart', () => {
    const acquire = (request: string, ...names: string[]): Command => ({
      kind: 'acquire',
      session: 's',
      request,
      locks: names.map((name) => ({ name, mode: 'exclusive', permits: null })),
      wait: false,
      owner: {},
      inbox: '',
      lockDelayMs: 0,
      barging: false,
    });
    const release = (request: string, ...names: string[]): Command => ({
      kind: 'release',
      session: 's',
      request,
      names,
      tokens: names.map(() => 1n),
      forget: true,
    });
    const pending = [
      acquire('1', 'a'),
      acquire('2', 'b'),
      acquire('3', 'c'),
      acquire('4', 'a', 'c'),
      release('2', 'd'),
      acquire('5', 'e'),
    ].map((command) => ({ command, touch: touchOf(command) }));
    const indices = groupByTouch(pending).map((group) => group.map((item) => pending.indexOf(item)));
    expect(indices).toEqual([[0, 2, 3], [1, 4], [5]]);
  });

  it('a store that takes few guards gets no more of them, and everybody still gets the lock', async () => {
    const sizes: number[] = [];
    const limited = (engine: Engine): Engine =>
      new Proxy(engine, {
        get(target, property) {
          if (property === 'maxGuards') return 8;
          const value = Reflect.get(target, property, target);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => {
            if (property === 'commit') {
              for (const { guards } of args[0] as { guards: unknown[] }[]) sizes.push(guards.length);
            }
            return value.apply(target, args);
          };
        },
      });
    const setup = new NodeSetup(undefined, {}, limited);
    const session = await setup.openSession();
    const answers = await Promise.all(Array.from({ length: 100 }, () => setup.acquire(session, 'x', true)));
    expect(answers.filter(({ kind }) => kind === 'granted')).toHaveLength(1);
    expect(answers.filter(({ kind }) => kind === 'queued')).toHaveLength(99);
    expect((await setup.node.inspect('x')).waiting).toBe(99);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
  });

  it('L3: the poll behind lost news costs two reads, however many wait; who was let in is found by it', async () => {
    const setup = new NodeSetup();
    setup.faults.onWake = () => 0;
    const session = await setup.openSession();
    const first = newRequest(session);
    const locks = [{ name: 'x', mode: 'exclusive', permits: null }] as const;
    const grant = granted(await setup.acquireAs(first, locks));
    const heard: string[] = [];
    setup.node.listen(session, (event) => heard.push(event.kind));
    await Promise.all(Array.from({ length: 500 }, () => setup.acquire(session, 'x', true)));
    setup.callsOf('read');
    await setup.time.advance(500);
    // And a third for the first in line, who asks whether there is room.
    expect(setup.callsOf('read')).toBeLessThanOrEqual(3);
    await setup.node.release(first, [grant], true);
    await setup.time.advance(600);
    expect(heard).toEqual(['granted']);
  });

  it('L3: a waiter that was let in, and whose grant was broken, all unheard, is told before long', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const first = newRequest(session);
    const locks = [{ name: 'x', mode: 'exclusive', permits: null }] as const;
    const grant = granted(await setup.acquireAs(first, locks));
    // Its turn to be asked after comes when that of others is over.
    for (let i = 0; i < 40; i += 1) await setup.acquire(session, 'y', true);
    const waiting = newRequest(session);
    expect((await setup.acquireAs(waiting, locks, true)).kind).toBe('queued');
    const heard: unknown[] = [];
    setup.node.listen(session, (event) => heard.push(event));
    setup.faults.onWake = () => 0;
    await setup.node.release(first, [grant], true);
    await breakHolderOf(setup, 'x');
    await setup.time.advance(2000);
    expect(heard).toEqual([{ kind: 'broken', request: waiting.request, name: 'x', reason: 'broken' }]);
  });

  it('L3: the poll passes over a record that cannot be read', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const first = newRequest(session);
    const locks = [{ name: 'y', mode: 'exclusive', permits: null }] as const;
    await setup.acquire(session, 'x');
    await setup.acquire(session, 'x', true);
    const grant = granted(await setup.acquireAs(first, locks));
    await setup.acquireAs(newRequest(session), locks, true);
    const heard: string[] = [];
    setup.node.listen(session, (event) => heard.push(event.kind));
    setup.faults.onWake = () => 0;
    const puts = [{ key: lockKey('x'), value: 'no record' }];
    await setup.engine.commit([{ guards: [], alive: [], puts, deletes: [], wakes: [] }]);
    await setup.node.release(first, [grant], true);
    await setup.time.advance(1000);
    expect(heard).toEqual(['granted']);
  });

  it('L3: and so is one for several locks, of which the grant of one was broken', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const first = newRequest(session);
    const locks = ['x', 'y'].map((name) => ({ name, mode: 'exclusive', permits: null }) as const);
    const grant = granted(await setup.acquireAs(first, locks.slice(0, 1)));
    const waiting = newRequest(session);
    expect((await setup.acquireAs(waiting, locks, true)).kind).toBe('queued');
    const heard: unknown[] = [];
    setup.node.listen(session, (event) => heard.push(event));
    setup.faults.onWake = () => 0;
    await setup.node.release(first, [grant], true);
    setup.faults.failNext('commit', { kind: 'lost' });
    await setup.time.advance(600);
    expect(heard).toEqual([]);
    await breakHolderOf(setup, 'x');
    await setup.time.advance(600);
    expect(heard).toEqual([{ kind: 'broken', request: waiting.request, name: 'x', reason: 'broken' }]);
  });

  it('L3: a waiter that goes on at another node is told there of its grant, at once', async () => {
    const one = new NodeSetup();
    const second = new NodeSetup(one);
    const [holder, session] = [await one.openSession(), await one.openSession()];
    const first = newRequest(holder);
    const locks = [{ name: 'x', mode: 'exclusive', permits: null }] as const;
    const grant = granted(await one.acquireAs(first, locks));
    const waiting = newRequest(session);
    expect((await one.acquireAs(waiting, locks, true)).kind).toBe('queued');
    const heard: string[] = [];
    second.node.listen(session, (event) => heard.push(event.kind));
    expect((await second.acquireAs(waiting, locks, true)).kind).toBe('queued');
    await one.node.release(first, [grant], true);
    // Long before any poll.
    await one.time.advance(1);
    expect(heard).toEqual(['granted']);
    expect((await second.node.inspect('x')).waiting).toBe(0);
  });

  it('a holder that goes on at another node is told there that its lock was broken', async () => {
    const one = new NodeSetup();
    const other = new NodeSetup(one);
    const session = await one.openSession();
    const id = newRequest(session);
    const locks = [{ name: 'x', mode: 'exclusive', permits: null }] as const;
    const grant = granted(await one.acquireAs(id, locks));
    const heard: string[] = [];
    other.node.listen(session, (event) => heard.push(event.kind));
    expect(granted(await other.acquireAs(id, locks))).toEqual(grant);
    await one.node.breakHold({ name: 'x', token: grant.token }, 'to see', 'the test');
    await one.time.advance(1);
    expect(heard).toEqual(['broken']);
  });
});

/** As an operator would. */
async function breakHolderOf({ node }: NodeSetup, name: string): Promise<void> {
  const [holder] = (await node.inspect(name)).holders;
  const outcome = await node.breakHold({ name, token: holder?.token ?? 0n }, 'to see', 'the test');
  expect(outcome.kind).toBe('broken');
}
