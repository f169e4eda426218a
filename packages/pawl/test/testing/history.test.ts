import { describe, expect, it } from 'vitest';
import { checkHistory, type GrantSeen } from '../../src/testing/index.ts';

function grant(token: bigint, [asked, granted, until]: [number, number, number], lock = 'x'): GrantSeen {
  return {
    lock,
    token,
    client: `client ${token}`,
    askedAtMs: asked,
    grantedAtMs: granted,
    heldUntilMs: until,
  };
}

describe('checkHistory', () => {
  it('finds nothing in a history that keeps the promises', () => {
    const grants = [
      grant(1n, [0, 1, 5]),
      grant(2n, [0, 5, 8]),
      // Asked for before the last was granted: either may have come first.
      grant(4n, [2, 9, 12]),
      grant(1n, [0, 1, 20], 'another'),
    ];
    const effects = [1n, 1n, 2n, 4n].map((token) => ({ resource: 'r', token }));
    expect(checkHistory({ grants, effects })).toEqual([]);
  });

  it('S1: finds a token that fell, and one that came twice', () => {
    expect(checkHistory({ grants: [grant(5n, [0, 1, 2]), grant(4n, [3, 4, 5])], effects: [] })).toEqual([
      expect.stringMatching(/^S1: client 4 .* came after client 5/),
    ]);
    expect(checkHistory({ grants: [grant(5n, [0, 1, 2]), grant(5n, [3, 4, 5])], effects: [] })).toHaveLength(
      2,
    );
  });

  it('S1: a token lower than one that was asked for later but granted before is no fault', () => {
    expect(checkHistory({ grants: [grant(5n, [2, 3, 3]), grant(4n, [1, 4, 5])], effects: [] })).toEqual([]);
  });

  it('S2: finds two that held at once, also when one held through several others', () => {
    const grants = [grant(1n, [0, 1, 100]), grant(2n, [2, 3, 4]), grant(3n, [5, 6, 7])];
    expect(checkHistory({ grants, effects: [] })).toEqual([
      expect.stringMatching(/^S2: client 1 .* client 2/),
      expect.stringMatching(/^S2: client 1 .* client 3/),
    ]);
  });

  it('S7: finds an effect of a lower token after one of a higher', () => {
    const effects = [1n, 3n, 2n].map((token) => ({ resource: 'r', token }));
    expect(checkHistory({ grants: [], effects })).toEqual(['S7: "r" accepted token 2 after token 3']);
  });
});
