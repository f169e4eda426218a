import { describe, expect, it } from 'vitest';
import type { Call } from '../../src/protocol/calls.ts';
import { readCall } from '../../src/protocol/read-call.ts';
import { writeCall } from '../../src/protocol/write-call.ts';

const id = { session: 's', request: 'r' };

function acquire(name: string, owner = {}): Call {
  const options = { wait: true, owner, lockDelayMs: 0, barging: false };
  return { method: 'acquire', id, locks: [{ name, mode: 'exclusive', permits: null }], options };
}

describe('a request', () => {
  it('does not say what a server takes for granted, which is read all the same', () => {
    const call = acquire('x');
    const { params, ...rest } = JSON.parse(writeCall(1, call));
    expect(rest).toEqual({ id: 1, method: 'acquire' });
    expect(params).toEqual({ ...id, locks: [{ name: 'x' }], wait: true, owner: {} });
    expect(readCall('acquire', params)).toEqual(call);
  });

  it('names any lock there can be, whatever JSON has to escape in it', () => {
    for (const name of ['"', '\\', 'a"b', '\n', '\u0000', '\u007f', '\u2028', 'é', '🔒', '}],"x":[{', ' '])
      expect(readCall('acquire', JSON.parse(writeCall(1, acquire(name))).params)).toEqual(acquire(name));
  });

  it('shows the owner that was asked for, also where another asked before', () => {
    const [one, other] = [{ host: 'a' }, { host: 'b' }];
    for (const owner of [one, other, one, { ...one }, {}])
      expect(JSON.parse(writeCall(1, acquire('x', owner))).params.owner).toEqual(owner);
  });
});
