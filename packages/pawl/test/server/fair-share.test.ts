import { expect, it } from 'vitest';
import { loopback } from '../../src/protocol/loopback.ts';
import type { Transport } from '../../src/protocol/transport.ts';
import { FairShare, Sharers } from '../../src/server/fair-share.ts';

/** Connections whose turns the test lets pass. */
function setup() {
  const handled: string[] = [];
  const turns: (() => void)[] = [];
  const paused = new Set<string>();
  const sharers = new Sharers();
  let mayRead = true;
  const share = (name: string) => {
    const transport: Transport = {
      ...loopback()[0],
      bufferedBytes: 0,
      yieldTo: (run) => void turns.push(run),
      pause: () => void paused.add(name),
      resume: () => void paused.delete(name),
    };
    return new FairShare<string>(
      sharers,
      transport,
      (message) => handled.push(message),
      () => mayRead,
    );
  };
  const nextTurn = () => {
    for (const run of turns.splice(0)) run();
  };
  const forbidReading = () => {
    mayRead = false;
  };
  return { handled, paused, share, nextTurn, forbidReading };
}

function messages(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${name}${i}`);
}

it('one that sends much waits behind itself, and others do not wait behind it', () => {
  const { handled, paused, share, nextTurn } = setup();
  const [greedy, modest] = [share('greedy'), share('modest')];
  greedy.add(messages('g', 1000));
  modest.add(['m0']);
  expect(handled.indexOf('m0')).toBeLessThan(100);
  expect(paused).toEqual(new Set(['greedy']));
  for (let turn = 0; paused.size > 0 && turn < 100; turn += 1) {
    const before = handled.length;
    modest.add([`m${turn + 1}`]);
    nextTurn();
    expect(handled.length - before).toBeLessThanOrEqual(100);
  }
  expect(handled.filter((each) => each.startsWith('g'))).toEqual(messages('g', 1000));
});

it('many that send much at once have small shares', () => {
  const { handled, share, nextTurn } = setup();
  const connections = Array.from({ length: 20 }, (_, i) => share(`${i}`));
  for (const [i, connection] of connections.entries()) connection.add(messages(`${i}-`, 200));
  const before = handled.length;
  nextTurn();
  expect(handled.length - before).toBeLessThanOrEqual(20 * 5);
});

it('what is added later comes later, and reading stays forbidden where something else forbids it', () => {
  const { handled, paused, share, nextTurn, forbidReading } = setup();
  const connection = share('x');
  connection.add(messages('a', 150));
  connection.add(messages('b', 10));
  forbidReading();
  while (handled.length < 160) nextTurn();
  nextTurn();
  expect(handled).toEqual([...messages('a', 150), ...messages('b', 10)]);
  expect([connection.isFull, paused.has('x')]).toEqual([false, true]);
});

it('nothing is handled after the end', () => {
  const { handled, share, nextTurn } = setup();
  const connection = share('x');
  connection.add(messages('a', 150));
  connection.stop();
  const before = handled.length;
  nextTurn();
  expect(handled).toHaveLength(before);
});
