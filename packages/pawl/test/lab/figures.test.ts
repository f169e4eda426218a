import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { assemblyFigures } from '../../src/lab/assembly.ts';
import { noExpiryFigures } from '../../src/lab/blocks/01-no-expiry.ts';
import { leaseFigures } from '../../src/lab/blocks/02-lease.ts';
import { fencingFigures } from '../../src/lab/blocks/03-fencing-tokens.ts';
import { whereToCheckFigures } from '../../src/lab/blocks/04-where-to-check.ts';
import { drawHolders, sizingFigures } from '../../src/lab/blocks/05-sizing-the-lease.ts';
import { replicationFigures } from '../../src/lab/blocks/06-replication.ts';
import { percent } from '../../src/lab/lesson.ts';
import { TwisterRandom } from '../../src/lab/random.ts';
import { verify } from '../../src/lab/verify/index.ts';

const golden = JSON.parse(readFileSync(new URL('./lab-figures.json', import.meta.url), 'utf8'));

describe('the random numbers are those of CPython', () => {
  it.each([
    [0, [0.8444218515250481, 0.7579544029403025, 0.420571580830845], 0.14982115610690708],
    [11, [0.4523795535098186, 0.559772386080496, 0.9242105840237294], 0.3133521775991199],
    [23, [0.9248652516259452, 0.9486057779931771, 0.8924333440485793], 0.04362425354993078],
    [4294967295, [0.6353574441341173, 0.20319993954407756, 0.6073666030347188], 0.17218655255737403],
  ])('for seed %i', (seed, first, exponential) => {
    const random = new TwisterRandom(seed);
    expect([random.random(), random.random(), random.random()]).toEqual(first);
    expect(random.exponential(0.5)).toBeCloseTo(exponential, 15);
  });

  it('also after many of them', () => {
    const random = new TwisterRandom(11);
    let last = 0;
    for (let i = 0; i < 100_000; i += 1) last = random.random();
    expect(last).toBe(0.9275979798315802);
  });
});

describe('every figure comes out', () => {
  it('of block 1', () => {
    const { clients, rows, tryIt } = noExpiryFigures();
    expect(clients).toBe(golden.block1.clients);
    expect(rows).toMatchObject(golden.block1.rows);
    expect(rows[0]?.wedged).toBe(false);
    expect(tryIt).toEqual(golden.block1.tryIt);
  });

  it('of block 2', () => {
    const { ttlS, rows, tryIt } = leaseFigures();
    expect(ttlS).toBe(golden.block2.ttlS);
    expect(rows).toMatchObject(golden.block2.rows);
    expect(rows.slice(0, 2).map((row) => row.splitBrain)).toEqual([false, false]);
    expect(tryIt).toEqual(golden.block2.tryIt);
  });

  it('of block 3', () => {
    expect(fencingFigures()).toEqual(golden.block3);
  });

  it('of block 4', () => {
    const { rows, tryIt } = whereToCheckFigures();
    expect(rows).toEqual(golden.block4.rows);
    expect(tryIt.map(({ declines }) => declines)).toEqual([true, false]);
  });

  it('of block 5', () => {
    const { rows, tryIt, tryItBestTtlS } = sizingFigures();
    expect(drawHolders().busyS).toHaveLength(golden.block5.holders);
    expect(
      rows.map(({ ttlS, zombies, wedgeS, label }) => [
        ttlS,
        percent(zombies),
        `${(wedgeS * 1000).toFixed(1)} ms`,
        label,
      ]),
    ).toEqual(golden.block5.rows);
    expect(
      tryIt.map(({ ttlS, zombies, wedgeS, cost }) => [
        ttlS,
        percent(zombies),
        `${(wedgeS * 1000).toFixed(1)}ms`,
        cost.toFixed(4),
      ]),
    ).toEqual(golden.block5.tryIt);
    expect(tryItBestTtlS).toBe(golden.block5.tryItBestTtlS);
  });

  it('of block 6', () => {
    expect(replicationFigures()).toEqual(golden.block6);
  });

  it('of the assembly', () => {
    const { operations, rows, gaps } = assemblyFigures();
    expect(operations).toBe(golden.assembly.operations);
    expect(
      rows.map(({ design, lost, wedged, rate }) => [
        design,
        lost,
        wedged,
        lost === 0 ? '0' : percent(rate, 3),
      ]),
    ).toEqual(golden.assembly.rows);
    expect(gaps.map(({ gapS, lost, share }) => [`${gapS * 1000} ms`, lost, percent(share, 1)])).toEqual(
      golden.assembly.gaps,
    );
  });

  it('of the claims, derived anew', () => {
    const claims = verify();
    const [b1, , , , b5, b5long, , late, small, big] = claims;
    expect(claims.filter(({ about }) => /^B[1-6]$|assembly/.test(about))).toHaveLength(golden.verify.claims);
    expect(claims.filter((claim) => !claim.holds)).toEqual([]);
    expect(b1?.measured).toBe(golden.verify.B1);
    expect(b5?.measured).toBe(golden.verify.B5[0]);
    expect(b5long?.measured).toBe('54 ms against 0.9 ms');
    expect(late?.measured).toBe(golden.verify.ASM[0]);
    expect(`${small?.measured} at 1 ms`).toBe(golden.verify.ASM[1]);
    expect(`${big?.measured} at 1 s`).toBe(golden.verify.ASM[2]);
  });
});
