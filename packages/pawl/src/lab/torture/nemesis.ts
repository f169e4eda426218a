import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from './machine-time.ts';
import type { Run } from './run.ts';
import type { Servers } from './targets.ts';
import type { WorkerProcess } from './worker-process.ts';

/** A holder has to have so much of its work before it to be aimed at, in ms. */
const AIM_MS = 5;
/** So long until all that a process said before it was stopped has been heard, in ms. */
const HEARD_MS = 30;
const CUT_MS = 1000;
/** A quota of the CPU lets a process run for a part of each period and stops it for the rest, in ms; the period is the kernel's usual one. */
const [QUOTA_MS, PERIOD_MS] = [10, 100];
const THROTTLED_MS = 2000;
/** So long everybody works undisturbed after an injury, in ms. */
const PEACE_MS = 300;
/** So long for anybody to be granted the lock, in ms: longer than any TTL. */
const STUCK_LIMIT_MS = 12_000;

/** The part of the TTL for which a holder is stopped. */
const STOP_TTLS = 1.5;

/** Injures all the runs side by side, one injury after the other, each at least once and for at least `forMs`. */
export async function torment(
  runs: readonly Run[],
  servers: Servers,
  ttlMs: number,
  forMs: number,
): Promise<void> {
  const all = (injure: (run: Run) => Promise<void>) => () => Promise.all(runs.map(injure));
  const injuries = [
    all((run) => stopHolder(run, ttlMs)),
    all(killHolder),
    all(throttleHolder),
    ...(runs.some((run) => run.networked) ? [all(cutHolder)] : []),
    ...(servers.restart === undefined ? [] : [() => restart(runs, servers)]),
  ];
  const untilMs = nowMs() + forMs;
  for (let round = 0; round === 0 || nowMs() < untilMs; round += 1) {
    for (const injure of injuries) {
      if (round > 0 && nowMs() >= untilMs) break;
      await sleep(PEACE_MS);
      await injure();
      await Promise.all(runs.map((run) => run.progress(STUCK_LIMIT_MS)));
    }
  }
  await sleep(PEACE_MS);
}

/** Stops whoever is between its read and its write, and lets it go on when its lease has long ended. */
async function stopHolder(run: Run, ttlMs: number): Promise<void> {
  const stopped = await seize(run);
  if (stopped === undefined) return;
  run.injuries.stops += 1;
  await sleep(ttlMs * STOP_TTLS - HEARD_MS);
  const resumedMs = nowMs();
  stopped.holder.signal('SIGCONT');
  // A grant may be known only later, but not be earlier than it was.
  await sleep(HEARD_MS);
  run.wedgesMs.push(Math.min(run.grantAfter(stopped.atMs) ?? resumedMs, resumedMs) - stopped.atMs);
}

/** Kills whoever is between its read and its write. */
async function killHolder(run: Run): Promise<void> {
  const stopped = await seize(run);
  if (stopped === undefined) return;
  run.injuries.kills += 1;
  stopped.holder.kill();
  await run.progress(STUCK_LIMIT_MS, stopped.atMs);
  run.wedgesMs.push((run.grantAfter(stopped.atMs) ?? nowMs()) - stopped.atMs);
}

/**
 * Lets whoever is between its read and its write run for a tenth of the time only, as in a container with a small quota of the CPU. It
 * goes on working all the while, slowly.
 */
async function throttleHolder(run: Run): Promise<void> {
  const stopped = await seize(run);
  if (stopped === undefined) return;
  run.injuries.throttles += 1;
  for (const untilMs = nowMs() + THROTTLED_MS; nowMs() < untilMs; ) {
    stopped.holder.signal('SIGSTOP');
    await sleep(PERIOD_MS - QUOTA_MS);
    stopped.holder.signal('SIGCONT');
    await sleep(QUOTA_MS);
  }
}

/** Cuts the connections of whoever is between its read and its write; it goes on all the same. */
async function cutHolder(run: Run): Promise<void> {
  let holder: WorkerProcess | undefined;
  await run.atHolder(AIM_MS, STUCK_LIMIT_MS, (worker) => {
    worker.cut();
    holder = worker;
  });
  if (holder === undefined) return;
  run.injuries.cuts += 1;
  await sleep(CUT_MS);
  holder.mend();
}

async function restart(runs: readonly Run[], servers: Servers): Promise<void> {
  await servers.restart?.();
  for (const run of runs) run.injuries.restarts += 1;
}

/** Stops a holder that has not written yet; again, where it was faster. */
async function seize(run: Run): Promise<{ holder: WorkerProcess; atMs: number } | undefined> {
  const untilMs = nowMs() + STUCK_LIMIT_MS;
  while (nowMs() < untilMs) {
    let stopped: { holder: WorkerProcess; atMs: number } | undefined;
    await run.atHolder(AIM_MS, untilMs - nowMs(), (holder) => {
      stopped = { holder, atMs: nowMs() };
      holder.signal('SIGSTOP');
    });
    if (stopped === undefined) return undefined;
    await sleep(HEARD_MS);
    if (stopped.holder.between) return stopped;
    stopped.holder.signal('SIGCONT');
  }
  return undefined;
}
