import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../../src/engines/engine.ts';
import { MachineClock, newPath, open, put, until, write } from './sqlite-fixture.ts';

const HOUR_MS = 3_600_000;
/** An expiry is put off by the grain of the machine's uptime. */
const GRAIN_MS = 10;

/** Whether a commit finds the session alive. */
async function isAlive(engine: Engine, id: string): Promise<boolean> {
  const [result] = await engine.commit([write({ alive: [id], puts: [{ key: 'key', value: id }] })]);
  return result?.kind === 'committed';
}

describe('sessions in SQLite', () => {
  it('S3: end by the time since boot', async () => {
    const clock = new MachineClock();
    const engine = await open(newPath(), { clock });
    await engine.openSession('session', 1000);
    clock.sinceBoot += 1000;
    expect(await engine.keepAlive(['session'])).toEqual(new Set(['session']));
    // One grain of the machine's uptime later than the TTL, since the grain may have cut it short.
    clock.sinceBoot += 1010;
    expect(await engine.keepAlive(['session'])).toEqual(new Set());
  });

  it('do not end by the wall clock, whichever way it steps', async () => {
    const clock = new MachineClock();
    const engine = await open(newPath(), { clock });
    await engine.openSession('session', 1000);
    for (const stepMs of [24 * HOUR_MS, -1000 * HOUR_MS]) {
      clock.wall += stepMs;
      expect(await engine.keepAlive(['session'])).toEqual(new Set(['session']));
    }
    await engine.openSession('other', 1000);
    clock.wall -= 24 * HOUR_MS;
    clock.sinceBoot += 1010;
    expect(await engine.keepAlive(['session', 'other'])).toEqual(new Set());
  });

  it('get their whole TTL anew after a restart of the machine', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const before = await open(path, { clock });
    await before.openSession('almost-over', 1000);
    await before.openSession('long', HOUR_MS);
    clock.sinceBoot += 900;
    await before.close();

    Object.assign(clock, { boot: 'boot-2', sinceBoot: 20_000 });
    const after = await open(path, { clock });
    clock.sinceBoot += 1000;
    expect(await after.keepAlive(['almost-over', 'long'])).toEqual(new Set(['almost-over', 'long']));
    clock.sinceBoot += 1010;
    expect(await after.keepAlive(['almost-over', 'long'])).toEqual(new Set(['long']));
    clock.sinceBoot += HOUR_MS + 10;
    expect(await after.keepAlive(['long'])).toEqual(new Set());
  });

  it('L1: get no more than that where the boot changes under an engine that is open', async () => {
    const clock = new MachineClock();
    const engine = await open(newPath(), { clock });
    await engine.openSession('session', 1000);
    expect(await isAlive(engine, 'session')).toBe(true);
    Object.assign(clock, { boot: 'boot-2', sinceBoot: 20_000 });
    expect(await isAlive(engine, 'session')).toBe(true);
    clock.sinceBoot += 1000 + GRAIN_MS;
    expect(await isAlive(engine, 'session')).toBe(false);
  });

  it('get it once: the second process to open after a restart gives nothing more', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const before = await open(path, { clock });
    await before.openSession('session', 1000);
    await before.close();
    Object.assign(clock, { boot: 'boot-2', sinceBoot: 20_000 });
    await open(path, { clock });
    clock.sinceBoot += 600;
    const second = await open(path, { clock });
    clock.sinceBoot += 410;
    expect(await second.keepAlive(['session'])).toEqual(new Set());
  });

  it('S3: an end stays an end over a restart of the machine', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const before = await open(path, { clock });
    for (const id of ['ended', 'expired', 'refused']) await before.openSession(id, 1000);
    await before.endSession('ended');
    clock.sinceBoot += 1010;
    expect(await before.keepAlive(['expired'])).toEqual(new Set());
    const refused = await before.commit([write({ alive: ['refused'], puts: [{ key: 'key', value: '' }] })]);
    expect(refused).toEqual([{ kind: 'sessionsEnded', sessions: ['refused'] }]);
    await before.close();

    Object.assign(clock, { boot: 'boot-2', sinceBoot: 0 });
    const after = await open(path, { clock });
    expect(await after.keepAlive(['ended', 'expired', 'refused'])).toEqual(new Set());
    for (const id of ['ended', 'expired', 'refused']) expect(await after.openSession(id, 1000)).toBe(false);
  });

  it('S3: an end stays an end where the time since boot steps back', async () => {
    const clock = new MachineClock();
    const engine = await open(newPath(), { clock });
    await engine.openSession('session', 1000);
    expect(await isAlive(engine, 'session')).toBe(true);
    let told = false;
    engine.watchEndings(() => {
      told = true;
    });
    clock.sinceBoot += 2000;
    await until(() => told);
    clock.sinceBoot -= 2000;
    expect(await isAlive(engine, 'session')).toBe(false);
  });

  it('S3: are alive or ended alike for all engines on a file, whichever of them did what', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const engines = [await open(path, { clock }), await open(path, { clock })];
    const step = fc.record({
      engine: fc.nat({ max: 1 }),
      ms: fc.integer({ min: 50, max: 300 }),
      what: fc.constantFrom('commit', 'commit', 'commit', 'open', 'renew', 'wait', 'wait', 'end'),
    });
    let runs = 0;
    const check = fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 20 }), async (steps) => {
      const id = `session-${runs++}`;
      let [ttlMs, expiresMs, ended] = [0, 0, false];
      const last = (forMs: number) => {
        [ttlMs, expiresMs] = [forMs, clock.sinceBoot + forMs + GRAIN_MS];
      };
      await engines[0]?.openSession(id, 200);
      last(200);
      for (const { engine: index, ms, what } of steps) {
        const engine = engines[index] as Engine;
        // A wait alone ends nothing: the session has ended once an engine has looked.
        if (what !== 'wait') ended ||= clock.sinceBoot >= expiresMs;
        if (what === 'open') {
          expect(await engine.openSession(id, ms)).toBe(!ended);
          last(ms);
        } else if (what === 'renew') {
          expect(await engine.keepAlive([id])).toEqual(new Set(ended ? [] : [id]));
          last(ttlMs);
        } else if (what === 'end') {
          await engine.endSession(id);
          ended = true;
        } else if (what === 'wait') clock.sinceBoot += ms / 2;
        else expect(await isAlive(engine, id)).toBe(!ended);
      }
    });
    await fc.assert(check, { numRuns: 200 });
  });

  it('that have ended are told of by every engine that watches, also of one that opens later', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const [first, second] = [await open(path, { clock }), await open(path, { clock })];
    const told = { first: new Set<string>(), second: new Set<string>(), late: new Set<string>() };
    first.watchEndings((ids) => ids.forEach((id) => void told.first.add(id)));
    second.watchEndings((ids) => ids.forEach((id) => void told.second.add(id)));
    await first.openSession('ended', 1000);
    await first.openSession('expired', 1000);
    await first.openSession('alive', 1000);
    await first.endSession('ended');
    clock.sinceBoot += 500;
    await first.keepAlive(['alive']);
    clock.sinceBoot += 510;
    await until(() => told.first.size === 2 && told.second.size === 2);
    const late = await open(path, { clock });
    late.watchEndings((ids) => ids.forEach((id) => void told.late.add(id)));
    await until(() => told.late.size === 2);
    for (const ids of Object.values(told)) expect(ids).toEqual(new Set(['ended', 'expired']));
  });

  it('that were cleaned up after leave nothing behind, nor do wakes that nobody fetched', async () => {
    const path = newPath();
    const clock = new MachineClock();
    const engine = await open(path, { clock });
    const ids = Array.from({ length: 50 }, (_, i) => `session-${i}`);
    for (const id of ids) await engine.openSession(id, 1000);
    clock.sinceBoot += 2000;
    await engine.keepAlive(ids);
    await engine.forgetSessions(ids);
    for (const _ of ids) {
      await engine.commit([write({ wakes: [{ inbox: 'nobody', message: 'hello' }] })]);
      clock.sinceBoot += 1000;
    }
    const db = new DatabaseSync(path);
    const count = (table: string) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n;
    expect(count('session')).toBe(0);
    expect(count('wake')).toBeLessThanOrEqual(12);
    db.close();
    expect(await engine.keepAlive(ids)).toEqual(new Set());
    await put(engine, 'key', 'value');
  });
});
