import { chmodSync, cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { helpText } from '../../src/cli/help.ts';
import { parseCommand } from '../../src/cli/parse.ts';
import { choose } from '../../src/lab/torture/choice.ts';
import { TARGET_NAMES } from '../../src/lab/torture/targets.ts';
import { haveRedis } from '../engines/redis-server.ts';
import { Bench } from './cli.ts';

const bench = new Bench();
const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));

describe('the arguments', () => {
  it('targets stand with commas, or are given more than once', () => {
    const { target } = parseCommand('torture', ['--target', 'redis, verrou', '--target=etcd']).options;
    expect(target).toEqual(['redis', 'verrou', 'etcd']);
    expect(parseCommand('torture', []).options.target).toBeUndefined();
  });

  it.each([
    ['--target', 'bogus'],
    ['--target', 'sqlite,bogus'],
    ['--target', ''],
    ['--target', 'sqlite,'],
    ['--seconds', '0'],
    ['--seconds', '1.5'],
    ['--seconds', 'long'],
    ['--svg', ''],
    ['--svg', '/nowhere/torture.svg'],
    ['--svg', '/'],
    ['--only', 'sqlite'],
    ['sqlite'],
  ])('%j is wrong usage, before anything is started: one line, exit 64', async (...args) => {
    const { code, stdout, stderr } = await bench.run('torture', ...args);
    expect(stderr).toMatch(/^pawl: .+\n$/);
    expect(stdout).toBe('');
    expect(code).toBe(64);
  });

  it('the help names every target', () => {
    for (const name of TARGET_NAMES) expect(helpText('torture', false)).toContain(name);
  });
});

describe('what this machine has not', () => {
  it('is skipped by name where the program of a server is not on PATH: exit 69, since it was asked for', async () => {
    const args = ['torture', '--target', 'redis,redlock,etcd3', '--json'];
    const { code, stdout } = await bench.start(args, { PATH: bench.folder }).ended;
    expect(JSON.parse(stdout)).toMatchObject({
      results: [],
      unmeasured: [
        { target: 'redis', kind: 'skipped', why: 'redis-server is not on PATH' },
        { target: 'redlock', kind: 'skipped', why: 'redis-server is not on PATH' },
        { target: 'etcd3', kind: 'skipped', why: 'etcd is not on PATH' },
      ],
    });
    expect(code).toBe(69);
    const { stdout: words } = await bench.start(args.slice(0, -1), { PATH: bench.folder }).ended;
    expect(words).toContain('redlock: skipped: redis-server is not on PATH\n');
  });

  it('is skipped by name where the package of a peer, or of a driver, does not stand beside Pawl', async () => {
    // Where no folder above has packages.
    for (const part of ['src', 'bin', 'package.json']) {
      cpSync(join(PACKAGE, part), bench.path(`alone/${part}`), { recursive: true });
    }
    const args = [
      'torture',
      '--target',
      TARGET_NAMES.filter((name) => name !== 'sqlite').join(','),
      '--json',
    ];
    const { stdout, stderr } = await bench.shell(
      `PATH=${bench.folder} ${process.execPath} ${bench.path('alone/bin/pawl.js')} ${args.join(' ')}`,
    ).ended;
    expect(stderr).toBe('');
    const { unmeasured } = JSON.parse(stdout);
    const why = Object.fromEntries(
      unmeasured.map((each: { target: string; why: string }) => [each.target, each.why]),
    );
    const needed = {
      postgres: 'pg',
      'advisory-locks': 'pg',
      redis: 'ioredis',
      'set-nx-px': 'ioredis',
      'redis-semaphore': 'redis-semaphore',
      verrou: '@verrou/core',
      redlock: 'redlock',
      etcd: '@grpc/grpc-js',
      etcd3: 'etcd3',
      'zookeeper-recipe': 'node-zookeeper-client',
    };
    for (const [target, name] of Object.entries(needed)) {
      expect(why[target]).toContain(`npm package ${name} is not installed beside pawl`);
    }
  });

  it('is none of the packages, in the workspace', () => {
    const whys = choose(undefined).skipped.map(({ why }) => why);
    expect(whys.filter((why) => why.includes('npm package'))).toEqual([]);
  });
});

it('a server that does not start is a failure by name: exit 1, with what it said, and no files behind', async () => {
  writeFileSync(bench.path('redis-server'), '#!/bin/sh\necho out of luck\nexit 3\n');
  chmodSync(bench.path('redis-server'), 0o755);
  const env = { PATH: bench.folder, TMPDIR: bench.folder };
  const { code, stdout } = await bench.start(['torture', '--target', 'redlock', '--json'], env).ended;
  expect(JSON.parse(stdout)).toMatchObject({
    results: [],
    unmeasured: [{ target: 'redlock', kind: 'failed', why: 'Redis ended before it was ready: out of luck' }],
  });
  expect(code).toBe(1);
  expect(readdirSync(bench.folder)).toEqual(['redis-server']);
});

describe('ended early', () => {
  it.skipIf(!haveRedis())('leaves no server, no worker and no files behind', async () => {
    const running = bench.start(['torture', '--target', 'redis'], { TMPDIR: bench.folder });
    // The command, its server, and three workers with the fence and three without it.
    while (bench.processes().length < 8) await sleep(20);
    // And they are at work.
    await sleep(1000);
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(143);
    while (bench.processes().length > 0) await sleep(10);
    expect(readdirSync(bench.folder)).toEqual([]);
  });
});
