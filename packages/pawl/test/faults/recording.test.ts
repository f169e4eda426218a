import { describe, expect, it } from 'vitest';
import { checkLinearizable } from '../../src/testing/index.ts';
import { Recording, type Said } from './recording.ts';

/** One worker that was granted this token from 10 to 20, and wrote under it; what it said up to the moment it was killed. */
function heard(name: string, token: string, atMs: number, lines = 8): Recording {
  const client = `${name}.0`;
  const said: Said[] = [
    { kind: 'call', id: 0, atMs, operation: { kind: 'acquire', lock: 'x', client, waits: true } },
    { kind: 'return', id: 0, atMs: atMs + 1, reply: token },
    { kind: 'call', id: 1, atMs: atMs + 2, operation: { kind: 'write', resource: 'x', token, client } },
    { kind: 'return', id: 1, atMs: atMs + 3, reply: 'accepted' },
    {
      kind: 'grant',
      id: 0,
      lock: 'x',
      token,
      client,
      askedAtMs: atMs,
      grantedAtMs: atMs + 1,
      heldUntilMs: atMs + 4,
    },
    { kind: 'call', id: 2, atMs: atMs + 5, operation: { kind: 'release', acquire: 0, client } },
    { kind: 'return', id: 2, atMs: atMs + 6, reply: 'released' },
    { kind: 'done' },
  ];
  const recording = new Recording(name);
  for (const line of said.slice(0, lines)) recording.hear(line);
  return recording;
}

function verdict(...recordings: Recording[]): string[] {
  return checkLinearizable(recordings.flatMap((each) => each.operations())).map(({ of }) => of);
}

/** One worker that was granted nothing. */
function failed(name: string, reply: string, atMs: number, waits = false): Recording {
  const recording = new Recording(name);
  recording.hear({
    kind: 'call',
    id: 0,
    atMs,
    operation: { kind: 'acquire', lock: 'x', client: name, waits },
  });
  recording.hear({ kind: 'return', id: 0, atMs: atMs + 1, reply });
  return recording;
}

describe('what workers say', () => {
  it('is a history of grants, releases and writes', () => {
    expect(
      heard('a', '1', 0)
        .operations()
        .map(({ kind, calledAtMs, returnedAtMs }) => [kind, calledAtMs, returnedAtMs]),
    ).toEqual([
      ['acquire', 0, 1],
      ['release', 5, 6],
      ['write', 2, 3],
    ]);
    expect(verdict(heard('a', '1', 0), heard('b', '2', 10))).toEqual([]);
  });

  it('S1, S2: shows two holders at once, and a token that fell', () => {
    expect(verdict(heard('a', '1', 0), heard('b', '2', 2))).toContain('lock "x"');
    expect(verdict(heard('a', '2', 0), heard('b', '1', 10))).toEqual(['lock "x"', 'resource "x"']);
  });

  it('S1, S2: a grant that was heard of only after its session had ended is no second holder', () => {
    const late = new Recording('a');
    late.hear({
      kind: 'call',
      id: 0,
      atMs: 0,
      operation: { kind: 'acquire', lock: 'x', client: 'a', waits: true },
    });
    late.hear({ kind: 'return', id: 0, atMs: 20, reply: '1' });
    expect(verdict(late, heard('b', '2', 10))).toEqual([]);
    // Its token is still one that was granted: none after it is lower.
    expect(verdict(late, heard('b', '1', 30))).toEqual(['lock "x"']);
  });

  it('S2, S6: a refusal or a time-out needs somebody who holds, or may hold', () => {
    for (const reply of ['refused', 'timedOut']) {
      const waits = reply === 'timedOut';
      expect(verdict(heard('a', '1', 0), failed('b', reply, 3, waits))).toEqual([]);
      expect(verdict(heard('a', '1', 0), failed('b', reply, 10, waits))).toEqual(['lock "x"']);
      expect(verdict(heard('a', '1', 0, 2), failed('b', reply, 10, waits))).toEqual([]);
      expect(verdict(failed('a', 'unknown', 0), failed('b', reply, 10, waits))).toEqual([]);
    }
  });

  it('S2: what an acquire may still hold in a session before its last explains a refusal; what it holds in the last alone does not', () => {
    const granted = (...sessions: string[]) => {
      const recording = heard('a', '2', 10);
      for (const session of sessions) recording.hear({ kind: 'sent', id: 0, atMs: 2, session });
      return recording;
    };
    expect(verdict(granted('first', 'second'), failed('b', 'refused', 5))).toEqual([]);
    expect(verdict(granted('first', 'first'), failed('b', 'refused', 5))).toEqual(['lock "x"']);
    expect(verdict(granted('first', 'second'), failed('b', 'refused', 0.5))).toEqual(['lock "x"']);
  });

  it.each([1, 2, 3, 4, 5, 6])('of a worker killed after %i lines, the rest is left open', (lines) => {
    expect(verdict(heard('a', '1', 0, lines), heard('b', '2', 10))).toEqual([]);
    // Its write may have come later, but not under a token that the fence has refused since.
    expect(verdict(heard('a', '3', 0, lines), heard('b', '2', 10)).length > 0).toBe(lines >= 2);
  });
});
