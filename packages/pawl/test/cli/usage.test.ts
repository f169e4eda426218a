import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/exit-codes.ts';
import { helpText } from '../../src/cli/help.ts';
import { COMMANDS } from '../../src/cli/options.ts';
import { parseCommand } from '../../src/cli/parse.ts';
import {
  AcquireTimeoutError,
  EngineUnavailableError,
  HeldError,
  InvalidArgumentError,
  LeaseAtRiskError,
  LeaseLostError,
  LockShapeError,
  NotHeldError,
  OutcomeUnknownError,
  QueueFullError,
  SessionEndedError,
  StoreCorruptError,
  StoreUnusableError,
  StoreVersionError,
  TtlTooShortError,
} from '../../src/errors.ts';
import { Bench, oldNode, PAWL } from './cli.ts';

const bench = new Bench();

describe('the arguments', () => {
  it('are turned into what the table says', () => {
    const { options, positionals, command } = parseCommand('run', [
      'deploy',
      '--ttl',
      '2m',
      '--',
      'sh',
      '-c',
      '--',
      'x',
    ]);
    expect(options).toEqual({ ttl: 120_000, wait: undefined, shared: false, db: undefined });
    expect(positionals).toEqual(['deploy']);
    expect(command).toEqual(['sh', '-c', '--', 'x']);
  });

  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5s', 1500],
    ['1.001s', 1001],
    ['1h', 3_600_000],
    ['250', 250],
    ['0', 0],
  ])('take %s for a duration', (text, ms) => {
    expect(parseCommand('run', ['x', '--wait', text, '--', 'a']).options.wait).toBe(ms);
  });

  it.each(['', '-1', '1.5', '0.0001s', '1d', 'NaN', '1e3', '99999999999999h', ' 1s'])(
    'refuse %j as a duration',
    (text) => {
      expect(() => parseCommand('run', ['x', `--wait=${text}`, '--', 'a'])).toThrow(
        expect.objectContaining({ code: 'PAWL_USAGE' }),
      );
    },
  );

  it.each([
    ['run'],
    ['run', 'x'],
    ['run', 'x', 'y', '--', 'a'],
    ['run', '--bogus', 'x', '--', 'a'],
    ['run', 'x', '--ttl'],
    ['run', 'x', '--ttl', '0', '--', 'a'],
    ['run', '', '--', 'a'],
    ['run', 'x'.repeat(513), '--', 'a'],
    ['break', 'x', '--reason', 'y'],
    ['break', 'x', '--token', '0', '--reason', 'y'],
    ['bogus'],
    ['help', 'bogus'],
  ])('%j is wrong usage: one line, exit 64', async (...args) => {
    const { code, stderr } = await bench.run(...args);
    expect(stderr).toMatch(/^pawl: .+\n$/);
    expect(code).toBe(64);
  });
});

it('what follows "--" is for the command alone', async () => {
  const { code, stderr } = await bench.run('run', 'x', '--ttl', '0', '--', 'echo', '--json', '--help');
  expect(stderr).toMatch(/^pawl: ttlMs must be .+\n$/);
  expect(code).toBe(64);
});

it('what others have written does not reach the terminal as it is', async () => {
  const { stdout } = await bench.run('run', 'a\nb\u001b[31m', '--', process.execPath, PAWL, 'ls');
  expect(stdout).toMatch(/^LOCK .*\na\\u\{a\}b\\u\{1b\}\[31m .*\n$/);
});

it('whoever stops reading does not make it fail', async () => {
  const { code, stderr } = await bench.shell(
    '{ sleep 0.5; $PAWL help --markdown; echo $? >&2; } | true; sleep 3',
  ).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '0\n' });
});

it('every kind of failure has its exit code', () => {
  const expected: [number, Error][] = [
    [64, new InvalidArgumentError('ttlMs', 'a number', 'x')],
    [64, new TtlTooShortError('ttlMs', 1, 100, 'sqlite')],
    [64, new LockShapeError('x', 'a lock', 'a semaphore of 2')],
    [75, new HeldError('x')],
    [75, new AcquireTimeoutError('x', 100)],
    [75, new QueueFullError('x', 10)],
    [75, new SessionEndedError('it expired')],
    [121, new LeaseLostError('x', 1n, 'it expired')],
    [121, new LeaseAtRiskError('x', 1n, 500, 1000)],
    [69, new EngineUnavailableError('no answer', 'indefinite')],
    [69, new OutcomeUnknownError('the acquire')],
    [69, new StoreUnusableError('x.db', 'it is a directory')],
    [69, new StoreCorruptError('x.db', 'a page is damaged')],
    [69, new StoreVersionError('x.db', 9, 1)],
    [1, new NotHeldError('x', 'nobody holds it')],
    [70, new TypeError('a defect')],
  ];
  for (const [code, error] of expected) expect([error.name, exitCodeOf(error)]).toEqual([error.name, code]);
});

describe('the help', () => {
  it.each([
    ['run', '--help'],
    ['run', 'x', '-h'],
    ['help', 'run'],
  ])('is shown by %j', async (...args) => {
    expect(await bench.run(...args)).toEqual({ code: 0, stdout: helpText('run', false), stderr: '' });
  });

  it.each(Object.keys(COMMANDS))('of %s names every option', (command) => {
    const text = helpText(command, false);
    for (const option of Object.keys(COMMANDS[command as keyof typeof COMMANDS].options)) {
      expect(text).toContain(`--${option}`);
    }
  });

  it('is also the reference page', () => {
    const page = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8');
    expect(page).toBe(helpText(undefined, true));
  });
});

describe('an old Node', () => {
  const node = oldNode();
  it.skipIf(node === undefined)('is told in one line which Node it needs', () => {
    let failure: unknown;
    try {
      execFileSync(node ?? '', [PAWL, 'ls'], { encoding: 'utf8', stdio: 'pipe' });
    } catch (error) {
      failure = error;
    }
    expect(failure).toMatchObject({
      status: 69,
      stderr: expect.stringMatching(/^pawl needs Node 22\.13 .*\n$/),
    });
  });
});

describe('the database', () => {
  it('is in the state directory of the user unless named, and that directory is made', async () => {
    const env = { PAWL_DB: '', XDG_STATE_HOME: bench.path('state') };
    expect((await bench.start(['run', 'x', '--', 'true'], env).ended).code).toBe(0);
    expect(existsSync(bench.path('state/pawl/pawl.db'))).toBe(true);
  });

  it('that cannot be in the state directory: exit 69 and a code', async () => {
    writeFileSync(bench.path('state'), 'no directory');
    const env = { PAWL_DB: '', XDG_STATE_HOME: bench.path('state') };
    const { code, stderr } = await bench.start(['ls', '--json'], env).ended;
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'PAWL_STORE_UNUSABLE' } });
    expect(code).toBe(69);
  });

  it.each([
    ['a directory', () => bench.folder],
    ['in no directory', () => bench.path('missing/locks.db')],
    [
      'no database',
      () => {
        writeFileSync(bench.path('text'), 'This is no database, but a text of some length.\n'.repeat(50));
        return bench.path('text');
      },
    ],
  ])('that is %s: exit 69 and a code', async (_what, make) => {
    const { code, stderr } = await bench.run('ls', '--json', '--db', make());
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'PAWL_STORE_UNUSABLE' } });
    expect(code).toBe(69);
  });
});

it('ls, inspect and break tell the same in JSON as in words', async () => {
  const holder = bench.start(['run', 'deploy/a b', '--ttl', '5s', '--', 'sh', '-c', 'echo ready; sleep 30']);
  await holder.prints('ready');
  const listed = JSON.parse((await bench.run('ls', '--json', 'deploy/')).stdout);
  expect(listed).toMatchObject([
    { name: 'deploy/a b', waiting: 0, holders: [{ token: '1', mode: 'exclusive' }] },
  ]);
  expect((await bench.run('ls')).stdout).toMatch(/deploy\/a b .*token 1/);
  expect(JSON.parse((await bench.run('inspect', '--json', 'deploy/a b')).stdout)).toMatchObject(listed[0]);

  const wrong = await bench.run('break', 'deploy/a b', '--token', '7', '--reason', 'test', '--json');
  expect(JSON.parse(wrong.stderr)).toMatchObject({ error: { code: 'PAWL_NOT_HELD' } });
  expect(wrong.code).toBe(1);
  const broken = await bench.run(
    'break',
    'deploy/a b',
    '--token',
    '1',
    '--reason',
    'stuck',
    '--by',
    'me',
    '--json',
  );
  expect(JSON.parse(broken.stdout)).toMatchObject({ token: '1', reason: 'stuck', by: 'me' });
  expect((await holder.ended).code).toBe(121);
  expect((await bench.run('inspect', 'deploy/a b')).stdout).toMatch(
    /free\n.*last broken: token 1 by me at .* since stuck/,
  );
});

it('S1: token-floor makes later tokens higher, and never lower', async () => {
  expect((await bench.run('run', 'x', '--', 'sh', '-c', 'echo $PAWL_TOKEN')).stdout).toBe('1\n');
  const raised = await bench.run('token-floor', '--at-least', '9007199254740993', '--json');
  expect(JSON.parse(raised.stdout)).toEqual({ before: '1', above: '9007199254740993' });
  expect((await bench.run('run', 'x', '--', 'sh', '-c', 'echo $PAWL_TOKEN')).stdout).toBe(
    '9007199254740994\n',
  );
  expect((await bench.run('token-floor', '--at-least', '5')).stdout).toMatch(/^Nothing to raise/);
  expect((await bench.run('run', 'x', '--', 'sh', '-c', 'echo $PAWL_TOKEN')).stdout).toBe(
    '9007199254740995\n',
  );
});

it('engines shows the same table as data and in words', async () => {
  const table = JSON.parse((await bench.run('engines', '--json')).stdout);
  expect(table.map((row: { engine: string }) => row.engine)).toEqual([
    'memory',
    'sqlite',
    'postgres',
    'redis',
    'etcd',
    'zookeeper',
    'redlock',
  ]);
  const { stdout } = await bench.run('engines');
  for (const row of table) {
    expect(row.needsFencing).toBe(true);
    for (const text of [row.engine, row.survives, row.expiryDecidedBy, row.tokensRestOn, row.wakeUp]) {
      expect(stdout).toContain(text);
    }
  }
});
