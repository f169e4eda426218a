import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { Bench } from './cli.ts';

const bench = new Bench();

describe('pawl run', () => {
  it('gives the command its lock and token, over whatever it inherited, and exits with its code', async () => {
    const script = 'echo "$PAWL_LOCK $PAWL_TOKEN"; exit 7';
    const { code, stdout } = await bench.start(['run', 'a b', '--', 'sh', '-c', script], {
      PAWL_TOKEN: '999',
    }).ended;
    expect(stdout).toBe('a b 1\n');
    expect(code).toBe(7);
  });

  it('a nested lock’s token stands over the outer one', async () => {
    const inner = '$PAWL run inner -- sh -c \'echo "$PAWL_LOCK $PAWL_TOKEN"\'; echo "$PAWL_LOCK $PAWL_TOKEN"';
    const { stdout } = await bench.shell(
      `export PAWL; $PAWL run outer -- sh -c '${inner.replaceAll("'", `'\\''`)}'`,
    ).ended;
    expect(stdout).toBe('inner 2\nouter 1\n');
  });

  it('starts no shell in between', async () => {
    const { stdout } = await bench.run('run', 'x', '--', 'printf', '%s|', '$HOME', '*', 'a b', ';');
    expect(stdout).toBe('$HOME|*|a b|;|');
  });

  it('exits with 128 + n where signal n ended the command', async () => {
    expect((await bench.run('run', 'x', '--', 'sh', '-c', 'kill -9 $$')).code).toBe(137);
  });

  it('exits with 127 or 126 where there is nothing to run, and releases the lock', async () => {
    writeFileSync(bench.path('plain'), 'text');
    chmodSync(bench.path('plain'), 0o644);
    expect((await bench.run('run', 'x', '--', bench.path('missing'))).code).toBe(127);
    expect((await bench.run('run', 'x', '--', bench.path('plain'))).code).toBe(126);
    expect((await bench.run('run', 'x', '--wait', '0', '--', 'true')).code).toBe(0);
  });

  it('exits with 75 where the lock is held, at once or after the wait', async () => {
    const holder = bench.start(['run', 'x', '--', 'sh', '-c', 'echo ready; sleep 30']);
    await holder.prints('ready');
    expect((await bench.run('run', 'x', '--wait', '0', '--', 'true')).code).toBe(75);
    expect((await bench.run('run', 'x', '--wait', '1s', '--', 'true')).code).toBe(75);
    expect(JSON.parse((await bench.run('inspect', 'x', '--json')).stdout)).toMatchObject({ waiting: 0 });
  });

  it('shares a lock where it is asked to', async () => {
    const holder = bench.start(['run', '-s', 'x', '--', 'sh', '-c', 'echo ready; sleep 30']);
    await holder.prints('ready');
    expect((await bench.run('run', '--shared', 'x', '-w', '0', '--', 'true')).code).toBe(0);
    expect((await bench.run('run', 'x', '-w', '0', '--', 'true')).code).toBe(75);
  });

  it('passes every signal on', async () => {
    const names = ['INT', 'HUP', 'QUIT', 'USR1', 'USR2'] as const;
    const traps = names.map((name) => `trap 'echo got ${name}' ${name}`).join('; ');
    const running = bench.start([
      'run',
      'x',
      '--',
      'sh',
      '-c',
      `${traps}; echo ready; while :; do sleep 0.05; done`,
    ]);
    await running.prints('ready');
    for (const name of names) {
      running.child.kill(`SIG${name}`);
      await running.prints(`got ${name}`);
    }
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(143);
  });

  it.skipIf(process.platform !== 'linux')('lets the command read from the terminal', async () => {
    const typed = bench.shell(
      `echo typed | script -qec "$PAWL run x -- sh -c 'read line && test -t 0 && echo read \\$line'" /dev/null`,
    );
    const { code, stdout } = await typed.ended;
    expect(stdout).toContain('read typed');
    expect(code).toBe(0);
  });

  it('passes signals on, and the command decides what they do', async () => {
    const script = 'trap "echo got it; exit 5" TERM; echo ready; while :; do sleep 0.05; done';
    const running = bench.start(['run', 'x', '--', 'sh', '-c', script]);
    await running.prints('ready');
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(stdout).toContain('got it');
    expect(code).toBe(5);
  });

  it('S6: a signal ends the wait and leaves no waiter behind', async () => {
    const holder = bench.start(['run', 'x', '--', 'sh', '-c', 'echo ready; sleep 30']);
    await holder.prints('ready');
    const waiter = bench.start(['run', 'x', '--', 'true']);
    await bench.untilWaiting('x');
    waiter.child.kill('SIGINT');
    expect((await waiter.ended).code).toBe(130);
    expect(JSON.parse((await bench.run('inspect', 'x', '--json')).stdout)).toMatchObject({ waiting: 0 });
  });

  it('C3: ends the whole group when the lock was taken away, with SIGKILL where SIGTERM does not help', async () => {
    const script =
      'trap "" TERM; (trap "" TERM; while :; do sleep 0.05; done) & echo "group $$ ready"; wait; sleep 30';
    const running = bench.start(['run', 'x', '--ttl', '5s', '--', 'sh', '-c', script]);
    await running.prints('ready');
    await bench.run('break', 'x', '--token', '1', '--reason', 'test');
    const { code, stdout, stderr } = await running.ended;
    expect(code).toBe(121);
    expect(stderr).toMatch(/^pawl: .*broken \(test\).*\n$/);
    const group = Number(/group (\d+)/.exec(stdout)?.[1]);
    await gone(group);
  });

  it('C3: ends the command before its lease ends where the database cannot be written, with SIGKILL if it must', async () => {
    const ttlMs = 6000;
    const log = bench.path('log');
    const script = `trap "" TERM; echo ready; while :; do date +%s%3N >> ${log}; sleep 0.02; done`;
    const running = bench.start(['run', 'x', '--ttl', `${ttlMs}`, '--', 'sh', '-c', script]);
    await running.prints('ready');
    const other = new DatabaseSync(bench.db);
    other.exec('BEGIN IMMEDIATE');
    // Nothing was renewed after this, so no lease lasts longer than from here.
    const cutOffAt = Date.now();
    const { code, stderr } = await running.ended;
    other.close();
    expect(code).toBe(121);
    expect(stderr).toMatch(/^pawl: .*at risk.*\n$/);
    expect(Number(readFileSync(log, 'utf8').trimEnd().split('\n').at(-1))).toBeLessThan(cutOffAt + ttlMs);
  });

  it('S2: does not release the lock at safe-stop while anything of the group is left', async () => {
    const log = bench.path('log');
    // The command ends when it is told to. What it has started does not listen, and goes on writing.
    const script = [
      `(trap "" TERM; while :; do echo "$PAWL_TOKEN" >> ${log}; sleep 0.01; done) &`,
      'trap "echo told >&2; exit 0" TERM; echo ready; while :; do sleep 0.02; done',
    ].join('\n');
    const running = bench.start(['run', 'x', '--ttl', '2s', '--', 'sh', '-c', script]);
    await running.prints('ready');
    const next = bench.start(['run', 'x', '--', 'sh', '-c', `echo "$PAWL_TOKEN" >> ${log}; sleep 1`]);
    await bench.untilWaiting('x');
    const other = new DatabaseSync(bench.db);
    other.exec('BEGIN IMMEDIATE');
    while (!running.stderr.includes('told')) await new Promise((resolve) => setTimeout(resolve, 5));
    // From here the release could go through.
    other.exec('ROLLBACK');
    other.close();
    const [first, second] = await Promise.all([running.ended, next.ended]);
    expect([first.code, second.code]).toEqual([121, 0]);
    const tokens = readFileSync(log, 'utf8').trimEnd().split('\n').map(Number);
    expect(new Set(tokens).size).toBe(2);
    expect(tokens).toEqual(tokens.toSorted((one, two) => one - two));
  });

  it('ends what the command left behind in its group before it releases the lock', async () => {
    const script = 'sleep 60 & echo "left $!"';
    const { code, stdout } = await bench.run('run', 'x', '--', 'sh', '-c', script);
    expect(code).toBe(0);
    await gone(Number(/left (\d+)/.exec(stdout)?.[1]));
  });

  it('S1, S2: eight shells that append fifty lines each do not interleave, and tokens strictly rise', async () => {
    const file = bench.path('lines');
    const rounds = 2;
    const lines25 = `i=0; while [ $i -lt 25 ]; do echo "$PAWL_TOKEN $1" >> ${file}; sleep 0.01; i=$((i+1)); done`;
    writeFileSync(bench.path('append.sh'), lines25);
    const loop = (who: number) =>
      `n=0; while [ $n -lt ${rounds} ]; do $PAWL run file -- sh ${bench.path('append.sh')} ${who} || exit 1; n=$((n+1)); done`;
    const shells = Array.from({ length: 8 }, (_, who) => bench.shell(loop(who)));
    for (const { ended } of shells) expect(await ended).toMatchObject({ code: 0, stderr: '' });

    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(lines).toHaveLength(8 * 50);
    const runs: { token: bigint; who: string | undefined; count: number }[] = [];
    for (const line of lines) {
      const [token = '', who] = line.split(' ');
      const last = runs.at(-1);
      if (last !== undefined && last.token === BigInt(token) && last.who === who) last.count += 1;
      else runs.push({ token: BigInt(token), who, count: 1 });
    }
    expect(runs.map((run) => run.count)).toEqual(new Array(8 * rounds).fill(25));
    for (const [i, run] of runs.entries()) {
      if (i > 0) expect(run.token).toBeGreaterThan(runs[i - 1]?.token ?? 0n);
    }
  });

  it('L1: a holder that was killed delays the next one, and no longer than its lease and a sweep', async () => {
    const ttlMs = 3000;
    const holder = bench.start([
      'run',
      'x',
      '--ttl',
      `${ttlMs}ms`,
      '--',
      'sh',
      '-c',
      'echo "child $$ ready"; sleep 60',
    ]);
    await holder.prints('ready');
    const waiter = bench.start(['run', 'x', '--', 'sh', '-c', 'echo "token $PAWL_TOKEN"']);
    await bench.untilWaiting('x');
    holder.child.kill('SIGKILL');
    process.kill(-Number(/child (\d+)/.exec(holder.stdout)?.[1]), 'SIGKILL');
    const killedAt = performance.now();
    const { code, stdout } = await waiter.ended;
    const tookMs = performance.now() - killedAt;
    expect(code).toBe(0);
    expect(Number(/token (\d+)/.exec(stdout)?.[1])).toBeGreaterThan(1);
    // How exact it is, bench/takeover.ts measures; here only that the wait ends with the lease and not much later.
    expect(tookMs).toBeLessThan(ttlMs + 10_000);
  });
});

/** Waits until a process has ended. */
async function gone(pid: number): Promise<void> {
  expect(pid).toBeGreaterThan(1);
  for (;;) {
    try {
      process.kill(pid, 0);
      if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return;
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
