import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../../src/engines/engine.ts';
import { newPath, open, put, startChild, startLimitedChild, until } from './sqlite-fixture.ts';

/** The acknowledged writes that a child printed: each key with its version. */
function acknowledged(lines: readonly string[]): { key: string; version: bigint }[] {
  return lines
    .map((line) => line.split(' '))
    .filter((words) => words.length === 2 && /^\d+$/.test(words[1] ?? ''))
    .map(([key = '', version = '']) => ({ key, version: BigInt(version) }));
}

async function versionsByKey(engine: Engine): Promise<Map<string, bigint>> {
  const entries = await engine.list('', 1_000_000);
  return new Map(entries.map(({ key, version }) => [key, version]));
}

describe('processes on one SQLite file', () => {
  it('S2: lose no update to each other', async () => {
    const path = newPath();
    const children = [1, 2, 3].map(() => startChild('increment', path, '60'));
    expect(await Promise.all(children.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    const engine = await open(path);
    const { entries } = await engine.read({ keys: ['counter'], ranges: [] });
    expect(entries.get('counter')).toMatchObject({ value: '180', version: 180n });
  });

  it('hear the wakes of each other, once', async () => {
    const path = newPath();
    const engine = await open(path);
    const heard: [string, bigint][] = [];
    const misdirected: string[] = [];
    engine.subscribe('mine', (message, version) => heard.push([message, version]));
    engine.subscribe('not mine', (message) => misdirected.push(message));
    for (const message of ['first', 'second']) {
      const before = heard.length;
      expect(await startChild('wake', path, 'mine', message).ended).toBe(0);
      await until(() => heard.length > before);
    }
    await delay(50);
    expect(heard).toEqual([
      ['first', 1n],
      ['second', 2n],
    ]);
    expect(misdirected).toEqual([]);
  });

  it('L1: the session of one that was killed ends, and the others are told', async () => {
    const path = newPath();
    const engine = await open(path);
    const told: string[] = [];
    engine.watchEndings((ids) => told.push(...ids));
    const child = startChild('die', path, 'session-of-the-dead', '100');
    expect(await child.ended).toBeNull();
    expect(child.lines).toEqual(['true']);
    await until(() => told.includes('session-of-the-dead'));
    expect(await engine.keepAlive(['session-of-the-dead'])).toEqual(new Set());
  });

  it('S1, S9: what was acknowledged survives SIGKILL, and versions go on upwards', async () => {
    const path = newPath();
    const all = new Map<string, bigint>();
    let highest = 0n;
    for (let round = 0; round < 5; round++) {
      const child = startChild('write', path, `round-${round}`);
      await until(() => child.lines.length > 5);
      await delay(randomInt(1, 80));
      child.process.kill('SIGKILL');
      expect(await child.ended).toBeNull();

      const writes = acknowledged(child.lines);
      for (const { key, version } of writes) {
        expect(version).toBeGreaterThan(highest);
        all.set(key, version);
      }
      const engine = await open(path);
      const stored = await versionsByKey(engine);
      for (const [key, version] of all) expect([key, stored.get(key)]).toEqual([key, version]);
      expect(new Set(stored.values()).size).toBe(stored.size);

      const next = await put(engine, `after-round-${round}`, '');
      for (const version of stored.values()) expect(version).toBeLessThan(next);
      all.set(`after-round-${round}`, next);
      highest = next;
      await engine.close();
    }
  });

  it('S1, S9: what was acknowledged survives SIGKILL while others go on writing', async () => {
    const path = newPath();
    const survivor = startChild('write', path, 'survivor');
    const victim = startChild('write', path, 'victim');
    await until(() => victim.lines.length > 5 && survivor.lines.length > 5);
    await delay(randomInt(1, 80));
    victim.process.kill('SIGKILL');
    await victim.ended;
    const sofar = survivor.lines.length;
    await until(() => survivor.lines.length > sofar + 5);
    survivor.process.kill('SIGKILL');
    await survivor.ended;

    const stored = await versionsByKey(await open(path));
    const writes = [...acknowledged(victim.lines), ...acknowledged(survivor.lines)];
    for (const { key, version } of writes) expect([key, stored.get(key)]).toEqual([key, version]);
    expect(new Set(writes.map(({ version }) => version)).size).toBe(writes.length);
  });

  it('C5: a write that the disk does not take is an error with an outcome, and loses nothing before it', async () => {
    const path = newPath();
    const child = startLimitedChild(2000, 'fill', path);
    expect(await child.ended).toBe(0);
    expect(child.lines.at(-1)).toMatch(/^PAWL_ENGINE_UNAVAILABLE (definite|indefinite)$/);
    const writes = acknowledged(child.lines.slice(0, -1));
    expect(writes.length).toBeGreaterThan(0);
    const engine = await open(path);
    const stored = await versionsByKey(engine);
    for (const { key, version } of writes) expect([key, stored.get(key)]).toEqual([key, version]);
    expect(await put(engine, 'after', '')).toBeGreaterThan(writes.at(-1)?.version ?? 0n);
  });

  it.each(['leave', 'close'])('an engine does not keep its process running: %s', async (command) => {
    const child = startChild(command, newPath());
    expect(await child.ended).toBe(0);
    expect(child.lines).toHaveLength(1);
  });
});
