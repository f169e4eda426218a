import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { constants as system } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sleep, systemClock } from '../../clock.ts';
import { drawChart } from '../../lab/torture/chart.ts';
import { renderReport } from '../../lab/torture/table.ts';
import { startTorture, type Torture } from '../../lab/torture/torture.ts';
import { EXIT } from '../exit-codes.ts';
import { toJson } from '../json.ts';
import type { Parsed } from '../options.ts';
import { UsageError } from '../parse.ts';

const SECONDS = 30;
const QUICK_SECONDS = 5;
/** So many groups of targets at once where it has to be quick. */
const QUICK_LANES = 2;
/** What was started is given so long to end after a signal, in ms: a server that ended by the same Ctrl-C may never be seen to end. */
const STOP_LIMIT_MS = 5000;

/** `pawl torture` */
export async function torture({ options }: Parsed<'torture'>): Promise<number> {
  const { target: targets, quick, svg, json } = options;
  const seconds = options.seconds ?? (quick ? QUICK_SECONDS : SECONDS);
  if (seconds === 0) throw new UsageError('--seconds must be above 0; each target is tortured for so long.');
  // Not after minutes.
  if (svg !== undefined) checkWritable(svg);
  const torture = startTorture({
    targets,
    forMs: seconds * 1000,
    lanes: quick ? QUICK_LANES : 1,
    workerFile: workerFile(),
    tell: (what) => process.stderr.write(`${what}\n`),
  });
  const forget = onInterrupt(torture);
  try {
    const report = await torture.report;
    const { results, unmeasured } = report;
    if (svg !== undefined) writeFileSync(svg, drawChart(results));
    process.stdout.write(json ? toJson(report) : renderReport(report));
    if (!report.fencedOnesHeld || unmeasured.some(({ kind }) => kind === 'failed')) return EXIT.failed;
    // What was asked for by name was not measured; of all targets, it may be that only some can be had.
    const asked = targets === undefined ? results.length : unmeasured.length === 0;
    return asked ? EXIT.ok : EXIT.unavailable;
  } finally {
    forget();
  }
}

function workerFile(): string {
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return fileURLToPath(new URL(`./worker.${ending}`, import.meta.url));
}

/** @throws UsageError */
function checkWritable(path: string): void {
  try {
    const present = statSync(path, { throwIfNoEntry: false });
    if (present?.isDirectory()) throw new Error('it is a directory');
    accessSync(present === undefined ? dirname(path) : path, constants.W_OK);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--svg must be a file that can be written, but "${path}" cannot: ${why}.`, {
      cause,
    });
  }
}

/** Ends with the signal's exit code, or that of a defect, but leaves no process and no files behind. @returns a function that undoes it. */
function onInterrupt(torture: Torture): () => void {
  let ending = false;
  const end = async (exitCode: number) => {
    if (ending) return;
    ending = true;
    await Promise.race([torture.stop(), sleep(systemClock, STOP_LIMIT_MS)]);
    process.exit(exitCode);
  };
  const undo = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => {
    const listener = () => void end(128 + system.signals[signal]);
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  const onDefect = (error: unknown) => {
    process.stderr.write(`pawl: ${error instanceof Error ? error.stack : String(error)}\n`);
    void end(EXIT.internal);
  };
  process.on('uncaughtException', onDefect);
  return () => {
    for (const each of undo) each();
    process.off('uncaughtException', onDefect);
  };
}
