import { describe, expect, it } from 'vitest';
import { granted, NodeSetup, newRequest } from './setup.ts';

const EXCLUSIVE = { mode: 'exclusive', permits: null } as const;
const SHARED = { mode: 'shared', permits: null } as const;

describe('a forced release', () => {
  it('S4: of several who hold under one token breaks only the one whose slot is named', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const readers = [newRequest(session), newRequest(session)];
    const [first, second] = [
      granted(await setup.acquireAs(readers[0] ?? newRequest(session), [{ name: 'x', ...SHARED }])),
      granted(await setup.acquireAs(readers[1] ?? newRequest(session), [{ name: 'x', ...SHARED }])),
    ];
    expect(second.token).toBe(first.token);
    const target = { name: 'x', token: first.token };
    await expect(setup.node.breakHold(target, 'to see', 'the test')).rejects.toMatchObject({
      code: 'PAWL_INVALID_ARGUMENT',
      message: expect.stringContaining(`${first.slot}, ${second.slot}`),
    });
    expect((await setup.node.breakHold({ ...target, slot: 99 }, 'to see', 'the test')).kind).toBe('notHeld');
    expect((await setup.node.inspect('x')).holders).toHaveLength(2);
    const broken = await setup.node.breakHold({ ...target, slot: second.slot }, 'to see', 'the test');
    expect(broken.kind).toBe('broken');
    expect((await setup.node.inspect('x')).holders.map(({ slot }) => slot)).toEqual([first.slot]);
  });

  it('S4: breaks nothing where the token is not that of the holder, or nobody holds', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const grant = granted(await setup.acquire(session, 'x'));
    for (const target of [
      { name: 'x', token: grant.token + 1n },
      { name: 'idle', token: grant.token },
    ]) {
      expect(await setup.node.breakHold(target, 'to see', 'the test')).toEqual({ kind: 'notHeld' });
      expect((await setup.node.inspect(target.name)).lastBreak).toBeNull();
    }
    expect((await setup.node.inspect('x')).holders.map(({ token }) => token)).toEqual([grant.token]);
  });
});

describe('the position in a queue', () => {
  it('is that of the waiter and of nobody else: null where it holds, never asked, or asked for another lock', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const holder = newRequest(session);
    await setup.acquireAs(holder, [{ name: 'x', ...EXCLUSIVE }]);
    const waiter = newRequest(session);
    await setup.acquireAs(waiter, [{ name: 'x', ...EXCLUSIVE }], true);
    expect(await setup.node.position(waiter, 'x')).toBe(0);
    expect(await setup.node.position(waiter, 'y')).toBeNull();
    expect(await setup.node.position(holder, 'x')).toBeNull();
    expect(await setup.node.position(newRequest(session), 'x')).toBeNull();
  });

  it('counts those ahead beyond one page of the queue', async () => {
    const setup = new NodeSetup();
    const session = await setup.openSession();
    const waiters = Array.from({ length: 1003 }, () => newRequest(session));
    await setup.acquire(session, 'x');
    await Promise.all(waiters.map((id) => setup.acquireAs(id, [{ name: 'x', ...EXCLUSIVE }], true)));
    const places = await Promise.all(
      [0, 999, 1000, 1002].map((i) => setup.node.position(waiters[i] ?? newRequest(session), 'x')),
    );
    expect(places).toEqual([0, 999, 1000, 1002]);
  });
});
