import { describe, expect, it, onTestFinished } from 'vitest';
import { Pawl } from '../../src/client/pawl.ts';
import { InvalidArgumentError, ServerFaultError } from '../../src/errors.ts';
import { LockNode } from '../../src/node/lock-node.ts';
import type { LockService, SignGrant } from '../../src/node/service.ts';
import { MemoryFaults, MemoryStore, memoryEngine, SimulatedTime } from '../../src/testing/index.ts';

/* What a client has given up must not stay held by it: its session is renewed for its other leases, for as long as they last. */

const TTL = 3000;

function setup(sign?: SignGrant) {
  const time = new SimulatedTime();
  const clock = time.clock();
  const faults = new MemoryFaults();
  const engine = memoryEngine({ store: new MemoryStore(), clock, faults });
  const node = new LockNode(engine, { clock, sign });
  /** Methods that fail once, in a way that no repetition helps. */
  const failing = new Set<keyof LockService>();
  const service = new Proxy<LockService>(node, {
    get(target, method: keyof LockService) {
      const value: unknown = Reflect.get(target, method, target);
      if (typeof value !== 'function') return value;
      return failing.delete(method) ? () => Promise.reject(new ServerFaultError()) : value.bind(target);
    },
  });
  const [pawl, other] = [new Pawl(service, { clock }), new Pawl(new LockNode(engine, { clock }), { clock })];
  onTestFinished(async () => {
    const closing = Promise.all([pawl.close(), other.close()]);
    await time.advance(20_000);
    await closing;
    await engine.close();
  });
  return { time, faults, failing, pawl, other };
}

describe('a lease that is given up', () => {
  it('C5, S6: by an acquire that failed after its grant, in whatever way, is given back', async () => {
    const sign: SignGrant = ({ lock }) => {
      if (lock === 'x') throw new TypeError('This key signs nothing.');
      return 'signed';
    };
    const { time, pawl, other } = setup(sign);
    const kept = await pawl.acquire('y', { ttlMs: TTL });
    await expect(pawl.acquire('x', { ttlMs: TTL })).rejects.toThrow('signs nothing');
    await time.advance(100);
    expect((await other.inspect('x')).holders).toEqual([]);
    expect(kept.held).toBe(true);
  });

  it('L1: by a release that failed for good does not keep its session: the lock is free a TTL later', async () => {
    const { time, failing, pawl, other } = setup();
    const lease = await pawl.acquire('x', { ttlMs: TTL });
    failing.add('release');
    await expect(lease.release()).rejects.toMatchObject({ code: 'PAWL_OUTCOME_UNKNOWN' });
    expect(lease.held).toBe(false);
    await time.advance(2 * TTL);
    expect((await other.inspect('x')).holders).toEqual([]);
  });

  it('L1: by an export that failed for good is given back, although its session lives on', async () => {
    const { time, failing, pawl, other } = setup();
    const [lease, kept] = [await pawl.acquire('x', { ttlMs: TTL }), await pawl.acquire('y', { ttlMs: TTL })];
    failing.add('transfer');
    await expect(lease.export()).rejects.toMatchObject({ code: 'PAWL_LEASE_LOST' });
    await time.advance(100);
    expect((await other.inspect('x')).holders).toEqual([]);
    expect(kept.held).toBe(true);
  });

  it('C4, S5: is not handed out again by its request id while its release is still repeated', async () => {
    const { time, faults, pawl } = setup();
    const lease = await pawl.acquire('x', { ttlMs: TTL, requestId: 'r' });
    faults.failNext('commit', { kind: 'refused' });
    const releasing = lease.release();
    await time.advance(1);
    const again = pawl.acquire('x', { ttlMs: TTL, requestId: 'r' }).catch((error: unknown) => error);
    await time.advance(500);
    await releasing;
    expect(await again).toMatchObject({ code: 'PAWL_REQUEST_FINISHED' });
  });
});

it('elect without a leader’s work is refused before it asks for the lock', async () => {
  const { pawl, other } = setup();
  await expect(pawl.elect('x', {}, undefined as never)).rejects.toThrow(InvalidArgumentError);
  expect((await other.inspect('x')).holders).toEqual([]);
});
