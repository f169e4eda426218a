import { describe, expect, it } from 'vitest';
import { Gate } from '../../src/fences/http/gate.ts';
import { type FenceStore, type HttpFenceOptions, memoryFence } from '../../src/fences/http/index.ts';

type Options = HttpFenceOptions<string>;
const gate = (part: Partial<Options> = {}) =>
  new Gate<string>({ store: memoryFence(), resource: (request) => request, ...part } as Options);

describe('the gate of an HTTP fence', () => {
  it('needs a store that can be raised, and a function that names the resource', () => {
    for (const options of [
      undefined,
      {},
      { store: memoryFence() },
      { resource: () => 'x' },
      { resource: () => 'x', store: {} },
      { resource: 'x', store: memoryFence() },
    ])
      expect(() => new Gate(options as Options)).toThrow(
        expect.objectContaining({ code: 'PAWL_FENCE_USAGE' }),
      );
  });

  it('S7: lets in who has a current token, and tells the others what is wrong', async () => {
    const open = gate();
    expect((await open.enter('x', '5')).problem).toBeUndefined();
    expect((await open.enter('x', '5')).problem).toBeUndefined();
    expect((await open.enter('y', '4')).problem).toBeUndefined();
    expect((await open.enter('x', '4')).problem).toMatchObject({
      status: 409,
      resource: 'x',
      token: '4',
      highest: '5',
    });
    expect((await open.enter('x', undefined)).problem).toMatchObject({ status: 428, resource: 'x' });
    expect((await open.enter('x', 'five')).problem).toMatchObject({ status: 400, token: 'five' });
  });

  it('lets through what has no resource, and refuses what has a bad one', async () => {
    expect((await gate({ resource: () => undefined }).enter('x', undefined)).problem).toBeUndefined();
    await expect(gate().enter('', '5')).rejects.toMatchObject({ code: 'PAWL_FENCE_USAGE' });
  });

  it('passes on the trouble of its store', async () => {
    const store: FenceStore = { raise: () => Promise.reject(new Error('away')) };
    await expect(gate({ store }).enter('x', '5')).rejects.toThrow('away');
  });

  it('gives turns where it is serialized, also after one that was refused or failed', async () => {
    let failing = false;
    const inner = memoryFence();
    const store: FenceStore = {
      raise: (resource, bearer) => {
        if (failing) throw new Error('away');
        return inner.raise(resource, bearer);
      },
    };
    const open = gate({ store, serialized: true });
    expect(open.serialized).toBe(true);
    const first = await open.enter('x', '5');
    const order: string[] = [];
    const second = open.enter('x', '5').then(() => order.push('second'));
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(order).toEqual([]);
    if (first.problem === undefined) first.done();
    await second;
    const other = gate({ store, serialized: true });
    expect((await other.enter('x', '4')).problem?.status).toBe(409);
    failing = true;
    await expect(other.enter('x', '5')).rejects.toThrow('away');
    failing = false;
    expect((await other.enter('x', '5')).problem).toBeUndefined();
  });

  it('lets all in at once where it is not', async () => {
    for (const options of [{}, { serialized: false }]) {
      const open = gate(options);
      expect(open.serialized).toBe(false);
      for (let i = 0; i < 3; i += 1) expect((await open.enter('x', '5')).problem).toBeUndefined();
    }
  });
});
