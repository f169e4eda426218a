import { execFileSync } from 'node:child_process';
import { uptime } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { SystemClock, sleep, systemClock } from '../../src/clock.ts';
import { SimulatedTime } from '../../src/testing/index.ts';

const source = fileURLToPath(new URL('../../src/clock.ts', import.meta.url));

describe('the clock of this machine', () => {
  it('tells the time since boot, the same in every process, and never an earlier one', async () => {
    const clock = new SystemClock();
    let last = 0;
    for (let i = 0; i < 200; i += 1) {
      const nowMs = clock.sinceBootMs();
      expect(nowMs).toBeGreaterThanOrEqual(last);
      last = nowMs;
      if (i % 20 === 0) await sleep(clock, 5);
    }
    expect(Math.abs(clock.sinceBootMs() - uptime() * 1000)).toBeLessThan(1000);
    const script = `import { systemClock } from '${source}'; console.log(systemClock.bootId(), systemClock.sinceBootMs());`;
    const before = clock.sinceBootMs();
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    const [id, ms] = said.trim().split(' ');
    expect(id).toBe(clock.bootId());
    expect(Number(ms)).toBeGreaterThan(before - 20);
    expect(Number(ms)).toBeLessThan(clock.sinceBootMs() + 20);
  });

  it('a timer fires once, or not at all if it was cancelled', async () => {
    let fired = 0;
    const timer = systemClock.setTimer(1, () => {
      fired += 1;
    });
    systemClock
      .setTimer(1, () => {
        fired += 10;
      })
      .cancel();
    await sleep(systemClock, 30);
    timer.cancel();
    expect(fired).toBe(1);
  });

  it('a timer longer than setTimeout takes does not fire at once', async () => {
    let fired = false;
    const timer = systemClock.setTimer(2 ** 40, () => {
      fired = true;
    });
    await sleep(systemClock, 20);
    timer.cancel();
    expect(fired).toBe(false);
  });
});

describe('simulated time', () => {
  it('fires timers in the order of their times, whichever clock they are on', async () => {
    const time = new SimulatedTime();
    const [a, b] = [time.clock(), time.clock({ rate: 2 })];
    const fired: string[] = [];
    a.setTimer(30, () => fired.push(`a30 at ${time.nowMs}`));
    b.setTimer(30, () => fired.push(`b30 at ${time.nowMs}`));
    a.setTimer(10, () => {
      fired.push(`a10 at ${time.nowMs}`);
      a.setTimer(0, () => fired.push(`a0 at ${time.nowMs}`));
    });
    a.setTimer(20, () => fired.push('never')).cancel();
    await time.advance(100);
    expect(fired).toEqual(['a10 at 10', 'a0 at 10', 'b30 at 15', 'a30 at 30']);
    expect([time.nowMs, a.monotonicMs(), b.monotonicMs(), a.pendingTimers]).toEqual([100, 100, 200, 0]);
  });

  it('can sleep, jump, stall and reboot', async () => {
    const time = new SimulatedTime();
    const clock = time.clock({ wallMs: 0 });
    let fired = false;
    clock.setTimer(10, () => {
      fired = true;
    });
    await clock.sleep(100);
    expect([clock.monotonicMs(), clock.wallMs(), clock.sinceBootMs(), fired]).toEqual([0, 100, 100, false]);
    clock.stall();
    await clock.advance(50);
    expect(fired).toBe(false);
    clock.resume();
    await clock.advance(0);
    expect(fired).toBe(true);
    clock.jumpWall(-500);
    expect([clock.wallMs(), clock.monotonicMs()]).toEqual([-350, 50]);
    const boot = clock.bootId();
    clock.reboot();
    expect([clock.bootId() === boot, clock.sinceBootMs()]).toEqual([false, 0]);
  });
});
