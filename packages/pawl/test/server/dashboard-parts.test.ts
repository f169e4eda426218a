import { describe, expect, it } from 'vitest';
import {
  addressOf,
  holderRows,
  type Lock,
  linkedLock,
  linkTo,
  lockIn,
  ownerText,
  Sightings,
} from '../../dashboard/locks.js';
import { Activity, buckets, parseMetrics, quantile, total } from '../../dashboard/metrics.js';
import { ageText, printable, rateText, secondsText } from '../../dashboard/text.js';
import { Trouble, troubleIn, troubleText } from '../../dashboard/trouble.js';
import { ask, client, running } from './setup.ts';

const HOSTILE = `<img src=x onerror="document.title='pwned'">`;

describe('figures from metrics', () => {
  it('reads what a server tells', async () => {
    const { server } = await running();
    const pawl = await client(server.url);
    for (let i = 0; i < 3; i += 1) await (await pawl.acquire('x')).release();
    expect(await pawl.tryAcquire('x').then((lease) => lease !== null)).toBe(true);
    const metrics = parseMetrics(String((await ask(server.url, 'GET', '/metrics')).body.text));
    expect(metrics.get('pawl_grants_total')).toBe(4);
    expect(total(metrics, 'pawl_endings_total')).toBe(3);
    const waits = buckets(metrics, 'pawl_acquire_seconds');
    expect(waits.at(-1)).toEqual({ bound: Number.POSITIVE_INFINITY, count: 4 });
    expect(waits.map(({ bound }) => bound)).toEqual(
      waits.map(({ bound }) => bound).toSorted((a, b) => a - b),
    );
    const figures = new Activity().note(metrics, 0);
    expect(figures).toMatchObject({
      sessions: 1,
      waiters: 0,
      grantsPerSecond: undefined,
      waitP50: undefined,
    });
  });

  it('passes over lines that are no sample', () => {
    const text = 'a 1\n# HELP b x\nb{l="} 2"} 3\n\nc\nd NaN\ne{l="\\""} 1e3 1700000000\nf +Inf\n<html> 5';
    expect([...parseMetrics(text)]).toEqual([
      ['a', 1],
      ['b{l="} 2"}', 3],
      ['e{l="\\""}', 1000],
      ['f', Number.POSITIVE_INFINITY],
    ]);
  });

  it('a quantile lies within its bucket, and beyond the last one it is infinite', () => {
    const histogram = [
      { bound: 1, count: 50 },
      { bound: 2, count: 50 },
      { bound: 4, count: 90 },
      { bound: Number.POSITIVE_INFINITY, count: 100 },
    ];
    expect(quantile(histogram, 0.25)).toBe(0.5);
    expect(quantile(histogram, 0.5)).toBe(1);
    expect(quantile(histogram, 0.7)).toBe(3);
    expect(quantile(histogram, 0.99)).toBe(Number.POSITIVE_INFINITY);
    expect(quantile([], 0.5)).toBeUndefined();
    expect(quantile([{ bound: Number.POSITIVE_INFINITY, count: 0 }], 0.5)).toBeUndefined();
  });

  it('rates and waits are of the last ten seconds, and start anew where counters fall', () => {
    const metrics = (grants: number, refused: number, slow: number) =>
      parseMetrics(
        [
          `pawl_grants_total ${grants}`,
          `pawl_refused_total{code="A"} ${refused}`,
          'pawl_refused_total{code="B"} 1',
          `pawl_acquire_seconds_bucket{le="1"} ${grants - slow}`,
          `pawl_acquire_seconds_bucket{le="3"} ${grants}`,
          `pawl_acquire_seconds_bucket{le="+Inf"} ${grants}`,
          `pawl_acquire_seconds_count ${grants}`,
        ].join('\n'),
      );
    const activity = new Activity();
    activity.note(metrics(1000, 0, 1000), 0);
    const second = activity.note(metrics(1020, 10, 1000), 2000);
    expect(second).toMatchObject({
      grantsPerSecond: 10,
      refusedPerSecond: 5,
      waitP50: 0.5,
      longestBucket: 3,
    });
    activity.note(metrics(1020, 10, 1000), 4000);
    const quiet = activity.note(metrics(1020, 10, 1000), 14_000);
    expect(quiet).toMatchObject({ grantsPerSecond: 0, refusedPerSecond: 0, waitP50: undefined });
    const slow = activity.note(metrics(1030, 10, 1010), 16_000);
    expect(slow.waitP50).toBe(2);
    expect(activity.note(metrics(3, 0, 0), 18_000).grantsPerSecond).toBeUndefined();
    expect(activity.note(metrics(7, 0, 0), 20_000).grantsPerSecond).toBe(2);
  });
});

describe('rows from locks', () => {
  const holder = (slot: number, more = {}) => {
    return { token: '7', slot, mode: 'exclusive', owner: { host: 'h', pid: '1' }, lockDelay: false, ...more };
  };
  const lock = (more: Partial<Lock> = {}): Lock => {
    return {
      name: 'x',
      permits: null,
      holders: [holder(0)],
      waiting: 0,
      waiters: [],
      lastBreak: null,
      ...more,
    };
  };

  it('one for each holder, up to five, and one where nobody holds', () => {
    expect(holderRows(lock())).toMatchObject({
      rows: [{ mode: 'exclusive', holder: 'h · pid 1', token: '7', slot: '–', lost: false }],
      more: 0,
    });
    const many = lock({ permits: 9, holders: [0, 1, 2, 3, 4, 5, 6].map((slot) => holder(slot)) });
    expect(holderRows(many)).toMatchObject({ rows: { length: 5 }, more: 2 });
    expect(holderRows(many).rows[1]).toMatchObject({ mode: 'semaphore, 7 of 9', slot: '1' });
    expect(holderRows(lock({ holders: [] }))).toMatchObject({ rows: [{ holder: 'nobody', token: '–' }] });
    const shared = lock({ holders: [holder(3, { mode: 'shared', lockDelay: true })] });
    expect(holderRows(shared).rows).toMatchObject([{ mode: 'shared', slot: '3', lost: true }]);
  });

  it('tells an owner in a line in which no character moves another', () => {
    const owner = { text: 'nightly', pid: '5', job: '\u202egnp\n', host: 'h', traceparent: '00-1-2-01' };
    expect(ownerText(owner)).toBe('h · pid 5 · nightly · job=\\u{202e}gnp\\u{a}');
    expect(ownerText({})).toBe('says nothing of itself');
    expect(printable('a\u0000\u2066<b>')).toBe('a\\u{0}\\u{2066}<b>');
  });

  it.each(['a/b?c#d', '%2e', '..', '.', HOSTILE, 'é\u0000', '__proto__'])(
    'finds the lock called %j again by its address and its link',
    async (name) => {
      const { server } = await running();
      const pawl = await client(server.url);
      const { token } = await pawl.acquire(name);
      await pawl.acquire(`${name}-`);
      const response = await fetch(new URL(addressOf(name), server.url));
      const answer = (await response.json()) as Lock | { locks: Lock[] };
      expect(lockIn(name, answer)).toMatchObject({ name, holders: [{ token: String(token) }] });
      expect(linkedLock(linkTo(name))).toBe(name);
      expect(linkTo(name)).not.toMatch(/[<>"\s]/);
    },
  );

  it('a lock that is not in the listing is idle; a broken link opens none', () => {
    expect(lockIn('..', { locks: [lock({ name: '..x' })] })).toMatchObject({ name: '..', holders: [] });
    expect(['', '#', '#lock=', '#lock=%ff'].map(linkedLock)).toEqual(new Array(4).fill(undefined));
  });

  it('knows since when it has seen a grant, and forgets one that is gone', () => {
    const sightings = new Sightings();
    sightings.note(['a', 'b'], 0);
    sightings.note(['a'], 1000);
    sightings.note(['a', 'b'], 2000);
    expect(['a', 'b', 'c'].map((grant) => sightings.ageMs(grant, 5000))).toEqual([5000, 3000, undefined]);
  });

  it('times and rates as they are read', () => {
    expect([0.00042, 0.25, 2.5, 300].map(secondsText)).toEqual(['0.4 ms', '250 ms', '2.5 s', '300 s']);
    expect([undefined, 0, 0.5, 1234.5].map(rateText)).toEqual(['–', '0', '0.5', '1,235']);
    const ages = [999, 61_000, 3_660_000, 90_000_000].map(ageText);
    expect(ages).toEqual(['0 s', '1 min 1 s', '1 h 1 min', '1 d 1 h']);
  });

  it('says what to do about each refusal', () => {
    const detail = troubleIn(403, '{"detail":"This token has no right."}');
    expect(troubleText(detail, true)).toMatch(/^This token has no right\. .*filter/);
    expect(troubleText(new Trouble(401, 'no token came'), false)).toMatch(/Enter a token/);
    expect(troubleText(new Trouble(401, 'It has expired.'), true)).toContain('It has expired.');
    expect(troubleText(new Trouble(0, ''), true)).toMatch(/cannot be reached/);
    expect(troubleText(troubleIn(503, '<html>bad gateway'), true)).toContain('The answer was 503.');
  });
});
