import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AdviseOptions, advise, renderAdvice } from '../../src/lab/advise/command.ts';
import { measureHost, quantile, stallsPerOperation } from '../../src/lab/advise/measure.ts';
import { priceTtls } from '../../src/lab/advise/price.ts';
import { TwisterRandom } from '../../src/lab/random.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-advise-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function random(): () => number {
  const twister = new TwisterRandom(1);
  return () => twister.random();
}

const options = (parts: Partial<AdviseOptions>): AdviseOptions => ({
  forMs: 200,
  workMs: 500,
  crashRate: 0.001,
  ...parts,
});

describe('the price of a TTL', () => {
  it('long stalls call for a longer lease', () => {
    const price = (stallsMs: number[]) =>
      priceTtls(
        { workMs: 500, stallsMs, crashRate: 0.001, roundTripMs: 1 },
        [1000, 5000, 30_000],
        100,
        random(),
      ).best;
    expect(price([0]).ttlMs).toBe(1000);
    expect(price([...new Array(99).fill(0), 4000]).ttlMs).toBe(5000);
  });

  it('zombies fall and wedges rise with the TTL', () => {
    const workload = { workMs: 500, stallsMs: [0, 10, 3000], crashRate: 0.01, roundTripMs: 1 };
    const { prices } = priceTtls(workload, [500, 1000, 5000, 20_000], 100, random());
    for (let i = 1; i < prices.length; i += 1) {
      expect(prices[i]?.zombiesUnrenewed).toBeLessThanOrEqual(prices[i - 1]?.zombiesUnrenewed ?? 0);
      expect(prices[i]?.zombiesRenewed).toBeLessThanOrEqual(prices[i - 1]?.zombiesRenewed ?? 0);
      expect(prices[i]?.wedgeMs).toBeGreaterThan(prices[i - 1]?.wedgeMs ?? 0);
    }
    for (const each of prices) expect(each.zombiesRenewed).toBeLessThanOrEqual(each.zombiesUnrenewed);
  });
});

describe('the measurement of a host', () => {
  it('sees a pause of the event loop, and round trips', async () => {
    let asked = 0;
    const measuring = measureHost(300, async () => {
      asked += 1;
    });
    setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 120), 50);
    const { pauses, roundTripsMs } = await measuring;
    expect(Math.max(...pauses.map((pause) => pause.forMs))).toBeGreaterThan(80);
    expect(roundTripsMs).toHaveLength(asked);
    expect(asked).toBeGreaterThan(0);
  });

  it('cuts pauses into operations', () => {
    const pauses = [
      { atMs: 10, forMs: 5 },
      { atMs: 90, forMs: 7 },
      { atMs: 150, forMs: 2 },
    ];
    expect(stallsPerOperation({ forMs: 300, pauses }, 100)).toEqual([12, 2, 0]);
    expect([0.5, 0.99, 1].map((share) => quantile([3, 1, 2], share))).toEqual([2, 3, 3]);
    expect(quantile([], 0.5)).toBe(0);
  });
});

describe('the advice', () => {
  it('prices this host and says which TTL it would take', async () => {
    const report = await advise(options({}), random());
    const text = renderAdvice(report);
    expect(report.measured).not.toBeNull();
    expect(text).toMatch(/CPU quota: .*\nSteal: /);
    expect(text).toMatch(/^Take .*: /m);
    expect(text.match(/ <$/gm)).toHaveLength(1);
  });

  it('prices a file of pauses without measuring anything', async () => {
    const path = join(folder, 'pauses');
    writeFileSync(path, `${[...new Array(98).fill(1), 2500, 2500].join('\n')}\n`);
    const report = await advise(options({ pauses: path }), random());
    expect(report.measured).toBeNull();
    expect(report.stallsMs).toMatchObject({ count: 100, max: 2500 });
    expect(report.advice.best.ttlMs).toBeGreaterThan(2500);
  });

  it.each([
    ['text', 'one\n'],
    ['nothing', '\n'],
    ['a negative number', '1\n-1\n'],
  ])('refuses a file with %s', async (_what, text) => {
    const path = join(folder, 'pauses');
    writeFileSync(path, text);
    await expect(advise(options({ pauses: path }), random())).rejects.toThrow(
      expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' }),
    );
  });

  it('refuses a file that is not there', async () => {
    await expect(advise(options({ pauses: join(folder, 'none') }), random())).rejects.toThrow(
      expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' }),
    );
  });
});
