import { expect, it } from 'vitest';
import { memoryEngine } from '../../src/engines/memory/index.ts';
import type { Transport, TransportEvents } from '../../src/protocol/transport.ts';
import { Connection } from '../../src/server/connection.ts';
import { checkLimits } from '../../src/server/limits.ts';
import { Log } from '../../src/server/log.ts';
import { type ServerParts, serverParts } from '../../src/server/parts.ts';
import { ANYBODY } from '../../src/server/principal.ts';
import { SimulatedClock } from '../../src/testing/index.ts';

/** A client that takes only as much as the test lets it. */
class Reluctant implements Transport {
  bufferedBytes = 0;
  paused = false;
  isCut = false;
  readonly frames: string[] = [];
  #events: TransportEvents | undefined;

  start(events: TransportEvents): void {
    this.#events = events;
  }
  send(frame: string): void {
    this.frames.push(frame);
    this.bufferedBytes += frame.length;
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
  defer(run: () => void): void {
    queueMicrotask(run);
  }
  yieldTo(run: () => void): void {
    queueMicrotask(run);
  }
  close(): void {}
  cut(): void {
    this.isCut = true;
  }
  says(...messages: unknown[]): void {
    this.#events?.onFrame(JSON.stringify(messages));
  }
  reads(): void {
    this.bufferedBytes = 0;
    this.#events?.onDrain?.();
  }
}

const PINGS = Array.from({ length: 10_000 }, (_, id) => ({ id, method: 'ping' }));

async function connected(bufferedBytes: number): Promise<[Reluctant, SimulatedClock, ServerParts]> {
  const clock = new SimulatedClock();
  const limits = checkLimits({ bufferedBytes, requestsInFlight: 20_000 });
  const parts = serverParts({ engine: memoryEngine({ clock }), clock, limits, log: new Log(clock) });
  const reluctant = new Reluctant();
  new Connection(parts, reluctant, ANYBODY);
  for (let round = 0; round < 3; round += 1) {
    reluctant.says(...PINGS);
    await clock.advance(1);
  }
  return [reluctant, clock, parts];
}

it('a client that does not read is not read from, and goes on where it stopped', async () => {
  const [reluctant, clock, parts] = await connected(8 * 1024 * 1024);
  const sent = reluctant.frames.length;
  expect(reluctant.paused).toBe(true);
  reluctant.says(...PINGS);
  await clock.advance(10_000);
  expect(reluctant.frames).toHaveLength(sent);
  // What had gathered is much by itself, so that it is paused once more until that is read.
  for (let i = 0; i < 2; i += 1) {
    reluctant.reads();
    await clock.advance(1);
  }
  expect([reluctant.paused, reluctant.isCut]).toEqual([false, false]);
  const answers = reluctant.frames.flatMap((frame) => JSON.parse(frame));
  expect(answers.filter(({ id }) => id !== undefined)).toHaveLength(40_000);
  await clock.advance(60_000);
  expect(reluctant.isCut).toBe(false);
  await parts.close();
});

it('a client that does not catch up within 15 s is cut off', async () => {
  const [reluctant, clock, parts] = await connected(8 * 1024 * 1024);
  await clock.advance(14_000);
  expect(reluctant.isCut).toBe(false);
  await clock.advance(1001);
  expect(reluctant.isCut).toBe(true);
  await parts.close();
});

it('a client that has too much unread is cut off at once', async () => {
  const [reluctant, , parts] = await connected(600_000);
  expect(reluctant.isCut).toBe(true);
  await parts.close();
});
