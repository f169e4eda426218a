import { describe, expect, it } from 'vitest';
import { breakHappened, releaseHappened } from '../../src/client/remote/aftermath.ts';
import { EngineUnavailableError, ForbiddenError } from '../../src/errors.ts';
import type { LockService } from '../../src/node/service.ts';
import { granted, NodeSetup, newRequest } from '../node/setup.ts';

/** A lock that was held and given back, at a node whose answer the client has not heard. */
async function released() {
  const setup = new NodeSetup();
  const session = await setup.openSession();
  const id = newRequest(session);
  const grant = granted(await setup.acquireAs(id, [{ name: 'x', mode: 'exclusive', permits: null }]));
  return { setup, session, id, grant };
}

/** The node, except that nobody may look at its locks, or that it cannot be reached for it. */
function blind(service: LockService, error: Error): LockService {
  return new Proxy(service, {
    get(target, property) {
      if (property === 'inspect') return () => Promise.reject(error);
      const value = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('a release whose answer was lost, and that is "not held" when repeated', () => {
  it('C5: has happened where the session lives and nobody broke the grant', async () => {
    const { setup, session, id, grant } = await released();
    await setup.node.release(id, [grant], true);
    expect(await releaseHappened(setup.node, session, [grant])).toBe(true);
  });

  it('C5: has happened also where an earlier grant of the lock was broken, but not where this one was', async () => {
    const { setup, session, id, grant } = await released();
    await setup.node.breakHold({ name: 'x', token: grant.token }, 'test', 'the test');
    expect(await releaseHappened(setup.node, session, [grant])).toBe(false);
    const next = newRequest(session);
    const later = granted(await setup.acquireAs(next, [{ name: 'x', mode: 'exclusive', permits: null }]));
    await setup.node.release(next, [later], true);
    expect(await releaseHappened(setup.node, session, [later])).toBe(true);
    expect(await releaseHappened(setup.node, session, [later, grant])).toBe(false);
    expect(id).not.toEqual(next);
  });

  it('C5: is in doubt no release: its session has ended, or who asks may not look', async () => {
    const { setup, session, id, grant } = await released();
    await setup.node.release(id, [grant], true);
    const forbidden = blind(setup.node, new ForbiddenError('read', 'lock "x"'));
    expect(await releaseHappened(forbidden, session, [grant])).toBe(false);
    await setup.node.closeSession(session);
    expect(await releaseHappened(setup.node, session, [grant])).toBe(false);
  });

  it('L5: stays open where the node cannot be reached', async () => {
    const { setup, session, grant } = await released();
    const away = blind(setup.node, new EngineUnavailableError('away', 'definite'));
    await expect(releaseHappened(away, session, [grant])).rejects.toMatchObject({
      code: 'PAWL_ENGINE_UNAVAILABLE',
    });
  });
});

describe('a break whose answer was lost', () => {
  it('C5: has happened only where the record names its token, its reason and who asked', async () => {
    const { setup, grant } = await released();
    const call = {
      method: 'breakHold',
      name: 'x',
      token: grant.token,
      slot: undefined,
      reason: 'stuck',
      by: 'me',
    } as const;
    expect(await breakHappened(setup.node, call)).toBeUndefined();
    await setup.node.breakHold({ name: 'x', token: grant.token }, 'stuck', 'me');
    expect(await breakHappened(setup.node, call)).toEqual({ kind: 'broken', owner: {} });
    for (const other of [{ reason: 'other' }, { by: 'you' }, { token: grant.token + 1n }])
      expect(await breakHappened(setup.node, { ...call, ...other })).toBeUndefined();
  });
});
