/**
 * Derives every claim of the lab once more. It shares no code with the blocks, the core or the fence, not even the random
 * numbers' generator: a mistake there cannot make its own claim come true.
 */

import { accepts, type Claim, say } from './claim.ts';
import { furtherClaims } from './further.ts';
import { numbers } from './numbers.ts';

export type { Claim } from './claim.ts';

export function verify(): readonly Claim[] {
  return [...leases(), ...sizing(), ...designs(), ...furtherClaims()];
}

function leases(): Claim[] {
  let owner = '';
  let completed = 0;
  for (let c = 0; c < 10 && owner === ''; c += 1) {
    owner = `c${c}`;
    if (c !== 3) {
      owner = '';
      completed += 1;
    }
  }
  const inside = lateWrite(9.9, false);
  const past = lateWrite(10.1, false);
  const fenced = lateWrite(10.1, true);
  return [
    say(
      'B1',
      'a lock without expiry stops for good when its holder dies',
      completed === 3,
      `${completed} of 10 completed`,
    ),
    say(
      'B2',
      'inside the TTL there is one holder',
      !inside.b && inside.value === 200,
      `B acquired: ${inside.b}; the value is ${inside.value}`,
    ),
    say(
      'B2',
      'past the TTL both write, and the older write stands',
      past.b && past.value === 200,
      `the value is ${past.value} after B’s 100`,
    ),
    say(
      'B3',
      'the fence refuses the late write and keeps the right value',
      fenced.b && fenced.value === 100 && !fenced.a,
      `the value is ${fenced.value}`,
    ),
  ];
}

function lateWrite(pauseS: number, fenced: boolean) {
  const b = pauseS >= 10;
  let [highest, value, a] = [0, 0, false];
  const writes: [string, number, number][] = b
    ? [
        ['B', 2, 100],
        ['A', 1, 200],
      ]
    : [['A', 1, 200]];
  for (const [who, token, written] of writes) {
    if (fenced && token < highest) continue;
    highest = Math.max(highest, token);
    value = written;
    a ||= who === 'A';
  }
  return { b, a, value };
}

function sizing(): Claim[] {
  const next = numbers(11);
  const exp = (mean: number) => -Math.log(1 - next()) * mean;
  const busy: number[] = [];
  let crashes = 0;
  for (let i = 0; i < 20_000; i += 1) {
    const work = exp(0.5);
    busy.push(work + (next() > 0.02 ? exp(0.05) : exp(8)));
    if (next() < 0.001) crashes += 1;
  }
  const zombies = (ttl: number) => busy.filter((each) => each > ttl).length / 20_000;
  const wedgeMs = (ttl: number) => (crashes * ttl * 1000) / 20_000;
  const small = [1, 2, 5, 10, 20, 30, 60].filter((ttl) => zombies(ttl) < 0.001 && wedgeMs(ttl) < 5);
  const share = `${(zombies(1) * 100).toFixed(2)}%`;
  return [
    say('B5', 'a short lease makes zombies', share === '16.53%', `${share} at 1 s`),
    say(
      'B5',
      'a long lease makes every death cost a TTL',
      wedgeMs(60) > 20 * wedgeMs(1),
      `${wedgeMs(60).toFixed(0)} ms against ${wedgeMs(1).toFixed(1)} ms`,
    ),
    say('B5', 'no TTL makes both small', small.length === 0, 'none below 0.1% zombies and 5 ms wedge'),
  ];
}

function designs(): Claim[] {
  const next = numbers(23);
  const exp = (mean: number) => -Math.log(1 - next()) * mean;
  const late: [number, number][] = [];
  for (let i = 0; i < 20_000; i += 1) {
    const work = exp(0.5);
    const stall = next() > 0.05 ? exp(0.05) : exp(12);
    const when = next();
    if (work + stall > 5) late.push([work, when]);
  }
  const leak = (gap: number) =>
    late.filter(([work, when]) => when * (work + gap) > work).length / late.length;
  const percent = (share: number) => `${(share * 100).toFixed(1)}%`;
  let fencedLosses = 0;
  for (const [, when] of late) if (when < 0) fencedLosses += 1;
  for (let token = 1; token < 100; token += 1) if (accepts(token + 1, token)) fencedLosses += 1;
  return [
    say(
      'assembly',
      'with a lease alone, whatever outlives it is lost',
      late.length === 710,
      `${late.length} of 20000 outlive the lease`,
    ),
    say(
      'assembly',
      'a check in the client leaks little at a gap of 1 ms',
      percent(leak(0.001)) === '1.7%',
      percent(leak(0.001)),
    ),
    say('assembly', 'and most of it at a gap of 1 s', percent(leak(1)) === '70.8%', percent(leak(1))),
    say(
      'assembly',
      'the fence leaks nothing at any gap',
      fencedLosses === 0,
      'a lower token is never accepted',
    ),
  ];
}
