import { describe, expect, it } from 'vitest';
import type { GrantedLock, SessionEvent } from '../../src/node/service.ts';
import { readResult, writeEvent, writeReply } from '../../src/protocol/results.ts';
import { readEvent } from '../../src/protocol/states.ts';
import { MAX_TOKEN } from '../../src/token.ts';

/** Whatever stands in names and signatures. */
const ODD = ['plain', 'a"b', 'back\\slash', 'line\n\u2028', '{"x":1}', '\u0000', 'Ö😀', '__proto__'];
const grants: GrantedLock[] = ODD.flatMap((name, slot) => [
  { name, mode: 'exclusive', slot, token: MAX_TOKEN },
  { name, mode: 'shared', slot, token: 1n, sequencer: name },
]);

describe('what a server writes', () => {
  it('of grants is read as it was, whatever stands in it', () => {
    for (const kind of ['granted', 'transferred'] as const) {
      const method = kind === 'granted' ? 'acquire' : 'transfer';
      const { id, result } = JSON.parse(writeReply(7, { kind, grants }));
      expect(id).toBe(7);
      expect(readResult(method, result)).toEqual({ kind, grants });
    }
  });

  it.each<SessionEvent>([
    { kind: 'granted', request: 'r"\\\n', grants },
    { kind: 'broken', request: 'r"\\\n', name: 'a"b', reason: 'line\n\u2028' },
  ])('of events is read as it was, whatever stands in it: $kind', (event) => {
    expect(readEvent(JSON.parse(writeEvent('s-1', event)))).toEqual({ session: 's-1', event });
  });

  it('of who holds a lock is nothing that ends their sessions', () => {
    const holder = {
      session: 'secret',
      request: 'r',
      mode: 'exclusive',
      slot: 0,
      token: 1n,
      owner: {},
      inbox: 'i',
      lockDelayMs: 0,
      ghost: false,
    } as const;
    const text = writeReply(1, { kind: 'held', name: 'x', holders: [holder], waiting: 0 });
    expect(JSON.parse(text)).toEqual({ id: 1, result: { kind: 'held', name: 'x', holders: [], waiting: 0 } });
  });
});
