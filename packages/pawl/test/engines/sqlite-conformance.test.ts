import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { newPath } from './sqlite-fixture.ts';
import { oneReleaseWakesOne } from './wakes.ts';

const writer = fileURLToPath(new URL('./sqlite-writer.ts', import.meta.url));

engineConformance({
  engine: 'sqlite',
  describe,
  it,
  ttlMs: 800,
  survivesProcesses: true,
  start: async () => {
    const path = newPath();
    const children = new Set<() => Promise<void>>();
    return {
      openEngine: () => sqliteEngine({ path }),
      passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      stop: async () => {
        for (const kill of children) await kill();
      },
      startWriter: async (prefix) => {
        const child = spawn(process.execPath, [writer, path, prefix], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
        let text = '';
        child.stdout.on('data', (chunk) => {
          text += chunk;
        });
        const kill = async () => {
          child.kill('SIGKILL');
          await ended;
        };
        children.add(kill);
        return { said: () => text, kill };
      },
    };
  },
});

it('L3: with 1,000 waiters on four nodes one release wakes one of them', async () => {
  const path = newPath();
  await oneReleaseWakesOne(() => sqliteEngine({ path }));
}, 90_000);
