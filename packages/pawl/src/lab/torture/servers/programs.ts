import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/* What all servers need. They are started from the programs of this machine; nothing is ever installed. */

/** Where a program is, by `PATH` and by the folders where it is put without being on it. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), ...folders]
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** The folders `<base>/<version>/bin`, the highest version first. */
export function versionedFolders(base: string): string[] {
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(base, version, 'bin'));
}

/**
 * A port of this machine that nobody listens on. Not one of those that systems give to whoever connects somewhere (from 32768 on, or higher): it
 * could be taken before the server is there, or while it is down.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(10_000, 32_768);
    if (await isFree(port)) return port;
  }
  throw new Error('There is no free port from 10000 to 32767.');
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/** Ends a process, and resolves once it is gone; also where it has gone by itself. */
export async function endProcess(
  child: ChildProcess | undefined,
  signal: 'SIGKILL' | 'SIGQUIT',
): Promise<void> {
  if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
