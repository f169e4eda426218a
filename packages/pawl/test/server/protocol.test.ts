import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import * as errors from '../../src/errors.ts';
import type { Call } from '../../src/protocol/calls.ts';
import { readError, writeError } from '../../src/protocol/errors.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import { Outbox } from '../../src/protocol/outbox.ts';
import { readCall } from '../../src/protocol/read-call.ts';
import { readResult, writeReply } from '../../src/protocol/results.ts';
import { writeCall } from '../../src/protocol/write-call.ts';
import { Connection } from '../../src/server/connection.ts';
import { checkLimits } from '../../src/server/limits.ts';
import { Log, type LogEntry } from '../../src/server/log.ts';
import { serverParts } from '../../src/server/parts.ts';
import { ANYBODY } from '../../src/server/principal.ts';
import { SimulatedClock } from '../../src/testing/index.ts';

const name = fc
  .string({ minLength: 1, maxLength: 100, unit: 'binary' })
  .filter((text) => text.isWellFormed() && Buffer.byteLength(text) <= 512);
const session = fc.stringMatching(/^[\w-]{1,64}$/);
const id = fc.record({ session, request: name });
const token = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });
const grants = fc.uniqueArray(fc.record({ name, token }), {
  minLength: 1,
  maxLength: 5,
  selector: (g) => g.name,
});
const owner = fc.dictionary(fc.string({ maxLength: 9 }), fc.string({ maxLength: 20 }), { maxKeys: 4 });
const ms = fc.nat(2_592_000_000);
const lock = fc.oneof(
  fc.record({ name, mode: fc.constantFrom('exclusive', 'shared'), permits: fc.constant(null) }),
  fc.record({ name, mode: fc.constant('exclusive'), permits: fc.integer({ min: 1, max: 1024 }) }),
);
const locks = fc.uniqueArray(lock, { minLength: 1, maxLength: 5, selector: (each) => each.name });
const forget = fc.boolean();

const untraced = fc.oneof(
  fc.record({ method: fc.constant('openSession'), ttlMs: fc.integer({ min: 1, max: 2_592_000_000 }) }),
  fc.record({
    method: fc.constant('keepAlive'),
    session,
    holds: fc.array(fc.record({ request: name, name })),
  }),
  fc.record({ method: fc.constantFrom('closeSession', 'listen', 'unlisten'), session }),
  fc.record({
    method: fc.constant('acquire'),
    id,
    locks,
    options: fc.record({ wait: fc.boolean(), owner, lockDelayMs: ms, barging: fc.boolean() }),
  }),
  fc.record({ method: fc.constant('release'), id, grants, forget }),
  fc.record({
    method: fc.constant('cancel'),
    id,
    names: fc.array(name, { minLength: 1, maxLength: 5 }),
    forget,
  }),
  fc.record({ method: fc.constant('transfer'), id, grants, to: id, owner, forget }),
  fc.record({
    method: fc.constant('breakHold'),
    name,
    token,
    slot: fc.option(fc.nat(), { nil: undefined }),
    reason: name,
    by: name,
  }),
  fc.record({ method: fc.constant('inspect'), name }),
  fc.record({
    method: fc.constant('list'),
    prefix: fc.oneof(name, fc.constant('')),
    limit: fc.integer({ min: 1, max: 100 }),
    after: fc.option(name, { nil: undefined }),
  }),
  fc.record({ method: fc.constant('position'), id, name }),
) as fc.Arbitrary<Call>;
const traced = fc.record({
  traceparent: fc.stringMatching(/^00-a[\da-f]{31}-a[\da-f]{15}-[\da-f]{2}$/),
});
const calls = fc
  .tuple(untraced, fc.oneof(fc.constant({}), traced))
  .map(([call, trace]): Call => ({ ...call, ...trace }));

describe('the protocol', () => {
  it('a request is read as it was written', () => {
    fc.assert(
      fc.property(calls, (call) => {
        const { id: number, method, params, traceparent } = JSON.parse(writeCall(7, call));
        expect(number).toBe(7);
        expect(readCall(method, params, traceparent)).toEqual(call);
      }),
      { numRuns: 500 },
    );
  });

  it('an answer is read as it was written', () => {
    const grant = { name: 'x', mode: 'exclusive', slot: 0, token: 2n ** 63n - 1n } as const;
    const state = {
      name: 'x',
      permits: null,
      holders: [{ ...grant, owner: {}, lockDelay: false }],
      waiting: 1,
      waiters: [{ mode: 'shared', owner: { a: 'b' } }],
      lastBreak: { token: 5n, slot: 0, by: 'b', reason: 'r', atMs: 1, owner: {} },
    } as const;
    const results = [
      ['acquire', { kind: 'granted', grants: [grant] }],
      ['acquire', { kind: 'queued', ahead: 3 }],
      ['acquire', { kind: 'finished', how: 'released' }],
      ['transfer', { kind: 'transferred', grants: [grant] }],
      ['release', { kind: 'notHeld' }],
      ['keepAlive', { alive: true, gone: [{ request: 'r', name: 'x' }] }],
      ['inspect', state],
      ['list', { locks: [state], more: true }],
      ['position', null],
      ['position', 5],
      ['openSession', 'abc'],
    ] as const;
    for (const [method, result] of results)
      expect(readResult(method, JSON.parse(writeReply(1, result)).result)).toEqual(result);
  });

  it('C5: every error that a server can answer with comes back as itself', () => {
    const { HeldError, LimitError, TtlTooShortError, LeaseLostError, EngineUnavailableError } = errors;
    const samples = [
      new HeldError('x'),
      new LimitError('sessions', 5, 'wait'),
      new TtlTooShortError('ttlMs', 5, 50, 'sqlite'),
      new LeaseLostError('x', 7n, 'gone'),
      new EngineUnavailableError('away', 'definite'),
      new EngineUnavailableError('away', 'indefinite'),
      new errors.InvalidArgumentError('name', 'good', 'bad'),
      new errors.UnauthenticatedError('no token'),
      new errors.ForbiddenError('read', 'x'),
    ];
    for (const error of samples) {
      const again = readError(JSON.parse(JSON.stringify(writeError(error))));
      expect(again.constructor).toBe(error.constructor);
      expect({ ...again, message: again.message }).toEqual({ ...error, message: error.message });
    }
  });

  it('an error of a newer server keeps its code; a fault of the server tells nothing of itself', () => {
    const unknown = readError({ code: 'PAWL_NEW', message: 'm', outcome: 'definite', retryable: true });
    expect(unknown).toMatchObject({ code: 'PAWL_NEW', message: 'm', outcome: 'definite', retryable: true });
    expect(errors.isPawlError(unknown)).toBe(true);
    expect(writeError(new TypeError('secret')).message).not.toContain('secret');
    for (const garbage of [
      null,
      5,
      'x',
      [],
      {},
      { code: '__proto__' },
      { code: 'PAWL_LEASE_LOST', token: {} },
    ])
      expect(errors.isPawlError(readError(garbage))).toBe(true);
  });

  it('nothing that comes crashes the server, whatever it is', async () => {
    const clock = new SimulatedClock();
    const entries: LogEntry[] = [];
    const log = new Log(clock, (entry) => void entries.push(entry));
    const parts = serverParts({ engine: memoryEngine({ clock }), clock, limits: checkLimits(), log });
    const methods =
      'acquire release cancel transfer keepAlive openSession closeSession list inspect breakHold'.split(' ');
    const message = fc.record(
      {
        id: fc.oneof(fc.nat(5), fc.anything()),
        method: fc.oneof(fc.constantFrom(...methods), fc.anything()),
        params: fc.oneof(
          fc.object({ key: fc.constantFrom('session', 'request', 'locks', 'name', 'grants') }),
          fc.anything(),
        ),
      },
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      fc.array(message).map((messages) => safely(messages)),
      fc.json(),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 5 }), async (frames) => {
        const [near, far] = loopback();
        new Connection(parts, far, ANYBODY);
        near.start({ onFrame: (frame) => void JSON.parse(frame), onClose: () => {} });
        for (const frame of frames) near.send(frame);
        await clock.advance(1);
        near.close(1000, '');
        await clock.advance(1);
      }),
      { numRuns: 300 },
    );
    expect(entries.filter(({ level }) => level === 'error')).toEqual([]);
    await parts.close();
  });

  it('messages of one moment go in one frame, no larger than allowed', async () => {
    const [near, far] = loopback();
    const frames: unknown[][] = [];
    far.start({ onFrame: (frame) => frames.push(JSON.parse(frame)), onClose: () => {} });
    const outbox = new Outbox(near, { frameBytes: 100, messagesPerFrame: 10 });
    for (let i = 0; i < 25; i += 1) outbox.post(String(i));
    outbox.post(JSON.stringify('x'.repeat(200)));
    outbox.post('1');
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(frames.map((frame) => frame.length)).toEqual([10, 10, 5, 1, 1]);
    expect(frames.flat()).toHaveLength(27);
  });
});

function safely(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '[]';
  }
}
