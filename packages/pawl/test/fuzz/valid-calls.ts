import fc from 'fast-check';

/** Names that meet, so that calls concern the same locks. */
export const name = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '..', '%', 'é'),
  fc.string({ minLength: 1, maxLength: 20, unit: 'binary' }).filter((text) => text.isWellFormed()),
);
/** Where a session that is known is put in. */
export const SESSION = 'SESSION';
const session = fc.constantFrom(SESSION, SESSION, SESSION, 'unknown');
const request = fc.constantFrom('r1', 'r2', 'r3');
const id = { session, request };
const token = fc.bigInt({ min: 1n, max: 50n }).map(String);
const grants = fc.array(fc.record({ name, token }), { minLength: 1, maxLength: 3 });
const owner = fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5 }), { maxKeys: 2 });
const lock = fc.record(
  {
    name,
    mode: fc.constantFrom('exclusive', 'shared'),
    permits: fc.constantFrom(null, 1, 3),
  },
  { requiredKeys: ['name'] },
);
const acquire = fc.record(
  {
    ...id,
    locks: fc.array(lock, { minLength: 1, maxLength: 3 }),
    wait: fc.boolean(),
    owner,
    lockDelayMs: fc.nat(100),
    barging: fc.boolean(),
  },
  { requiredKeys: ['session', 'request', 'locks'] },
);

/** What a client may send, by the method. */
const PARAMS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  acquire,
  release: fc.record({ ...id, grants, forget: fc.boolean() }),
  cancel: fc.record({ ...id, names: fc.array(name, { minLength: 1, maxLength: 3 }), forget: fc.boolean() }),
  transfer: fc.record({ ...id, grants, to: fc.record(id), owner, forget: fc.boolean() }),
  keepAlive: fc.record({ session, holds: fc.array(fc.record({ request, name }), { maxLength: 3 }) }),
  openSession: fc.record({ ttlMs: fc.integer({ min: 1, max: 100_000 }) }),
  closeSession: fc.record({ session: fc.constant('unknown') }),
  listen: fc.record({ session }),
  unlisten: fc.record({ session }),
  breakHold: fc.record({ name, token, reason: name, by: name }),
  inspect: fc.record({ name }),
  list: fc.record({ prefix: fc.constantFrom('', 'a'), limit: fc.integer({ min: 1, max: 9 }) }),
  position: fc.record({ ...id, name }),
  ping: fc.constant({}),
  authenticate: fc.record({ token: fc.string() }),
};

/** One message with a number below 1000. */
export const message = fc.oneof(
  ...Object.entries(PARAMS).map(([method, params]) =>
    fc.record({ id: fc.nat(999), method: fc.constant(method), params }),
  ),
);

/** Puts a session in the place of its mark. */
export function withSession(text: string, known: string): string {
  return text.replaceAll(SESSION, known);
}
