import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Pawl } from '../../src/client/pawl.ts';
import { RemoteService } from '../../src/client/remote/remote-service.ts';
import { memoryEngine, memoryGuarantees } from '../../src/engines/memory/index.ts';
import { isPawlError } from '../../src/errors.ts';
import { loopback } from '../../src/protocol/loopback.ts';
import type { Transport } from '../../src/protocol/transport.ts';
import { Connection } from '../../src/server/connection.ts';
import { checkLimits } from '../../src/server/limits.ts';
import { Log } from '../../src/server/log.ts';
import { serverParts } from '../../src/server/parts.ts';
import { ANYBODY } from '../../src/server/principal.ts';
import { SimulatedTime } from '../../src/testing/index.ts';
import { mutateJson, type Place, place } from './mutations.ts';

/** Which frame of the server's is spoilt, and how. */
const spoilt = fc.array(fc.tuple(fc.nat(25), place), { minLength: 1, maxLength: 6 });

/** A client of a real server whose frames are mutated on their way. */
function open(spoils: ReadonlyMap<number, Place>, time: SimulatedTime) {
  const clock = time.clock();
  const engine = memoryEngine({ clock });
  const parts = serverParts({ engine, clock, limits: checkLimits(), log: new Log(clock) });
  let frames = 0;
  const spoil = (transport: Transport): Transport => ({
    start: (events) => transport.start(events),
    send: (frame) => {
      const change = spoils.get(frames++);
      transport.send(change === undefined ? frame : JSON.stringify(mutateJson(JSON.parse(frame), change)));
    },
    bufferedBytes: 0,
    pause: () => {},
    resume: () => {},
    defer: (run) => transport.defer(run),
    yieldTo: (run) => transport.yieldTo(run),
    close: (code, reason) => transport.close(code, reason),
    cut: () => transport.cut(),
  });
  const dial = async () => {
    const [near, far] = loopback();
    new Connection(parts, spoil(far), ANYBODY);
    return near;
  };
  const service = new RemoteService({ urls: ['a'], dialer: { dial }, clock, guarantees: memoryGuarantees });
  const close = async () => {
    await parts.close();
    await engine.close();
  };
  return { pawl: new Pawl(service, { clock }), close };
}

describe('a client whose server sends anything at all', () => {
  it('C5, C6: gets what it asked for or a typed error, in time, and works on once the server is sane', async () => {
    let failed = 0;
    await fc.assert(
      fc.asyncProperty(spoilt, async (spoils) => {
        const time = new SimulatedTime();
        const left = new Map(spoils);
        const { pawl, close } = open(left, time);
        /** What comes of it, letting time pass. */
        const settled = async <T>(work: Promise<T>): Promise<T | undefined> => {
          let isOver = false;
          const watched = work.then(
            (value) => ({ value }),
            (error: unknown) => ({ error }),
          );
          void watched.then(() => {
            isOver = true;
          });
          for (let passedMs = 0; !isOver; passedMs += 100) {
            expect(passedMs).toBeLessThan(300_000);
            await time.advance(100);
          }
          const outcome = await watched;
          if ('value' in outcome) return outcome.value;
          failed += 1;
          expect(outcome.error).toSatisfy(isPawlError);
          return undefined;
        };
        for (let round = 0; round < 3; round += 1) {
          const lease = await settled(pawl.acquire('x', { ttlMs: 2000, waitMs: 3000 }));
          await settled(pawl.inspect('x'));
          await settled(pawl.list().next());
          if (lease !== undefined) await settled(lease.release());
        }
        left.clear();
        await time.advance(60_000);
        const others = await settled(pawl.acquire('y', { ttlMs: 2000, waitMs: 20_000 }));
        expect(others?.token).toBeGreaterThan(0n);
        await settled(pawl.close());
        await close();
      }),
      { numRuns: 40 },
    );
    expect(failed).toBeGreaterThan(0);
  }, 60_000);
});
