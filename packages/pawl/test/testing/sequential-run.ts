import fc from 'fast-check';
import type { Operation } from '../../src/testing/index.ts';

/** What is asked of a lock and of a resource behind a fence, one thing after the other. */
const step = fc.record({
  action: fc.constantFrom('acquire', 'acquire', 'release', 'release', 'end', 'write', 'raise', 'late write'),
  client: fc.nat(3),
  /** How long before it took effect it was called, and how long after it returned. */
  earlyMs: fc.nat(40),
  lateMs: fc.nat(40),
  /** Whether the reply was lost. */
  isLost: fc.nat(9).map((n) => n === 0),
  skipped: fc.bigInt({ min: 1n, max: 3n }),
});
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A history that is linearizable, since it was made by a lock and a fence that did one thing after the other, each a moment in its interval. */
export const sequentialHistory: fc.Arbitrary<Operation[]> = fc
  .array(step, { minLength: 1, maxLength: 60 })
  .map(execute);

/** Asks a real lock and a real fence, the one that all this is about, at every tenth ms. */
function execute(steps: readonly Step[]): Operation[] {
  const generations = [0, 0, 0, 0];
  const granted: { session: string; token: bigint }[] = [];
  let highest = 0n;
  let honoured = 0n;
  let holder: { session: string; token: bigint } | undefined;
  return steps.map((each, i): Operation => {
    const atMs = i * 10;
    const session = `${each.client}.${generations[each.client]}`;
    const times = {
      client: `client ${each.client}`,
      calledAtMs: atMs - each.earlyMs,
      returnedAtMs: each.isLost ? Infinity : atMs + each.lateMs,
    };
    const told = <T>(reply: T) => (each.isLost ? 'unknown' : reply);
    if (each.action === 'end') {
      generations[each.client] = (generations[each.client] ?? 0) + 1;
      if (holder?.session === session) holder = undefined;
      return { kind: 'end', session, ...times };
    }
    if (each.action === 'acquire') {
      if (holder !== undefined)
        return { kind: 'acquire', lock: 'x', session, reply: told('refused'), ...times };
      highest += each.skipped;
      holder = { session, token: highest };
      granted.push(holder);
      return { kind: 'acquire', lock: 'x', session, reply: told(highest), ...times };
    }
    // Now and then somebody acts under the grant before the last.
    const grant = (each.action === 'late write' ? granted.at(-2) : granted.at(-1)) ?? { session, token: 1n };
    if (each.action === 'release') {
      const isHeld = holder?.token === grant.token;
      if (isHeld) holder = undefined;
      const reply = told(isHeld ? ('released' as const) : ('notHeld' as const));
      return { kind: 'release', lock: 'x', ...grant, reply, ...times };
    }
    const isAccepted = grant.token >= honoured;
    if (isAccepted) honoured = grant.token;
    const reply = told(isAccepted ? ('accepted' as const) : ('refused' as const));
    const kind = each.action === 'raise' ? 'raise' : 'write';
    return { kind, resource: 'r', token: grant.token, reply, ...times };
  });
}
