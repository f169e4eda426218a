import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { open } from '../../src/client/open.ts';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { Bench, Running } from '../cli/cli.ts';

const bench = new Bench();
const program = fileURLToPath(new URL('./process-child.ts', import.meta.url));

function start(...args: string[]): Running {
  const flags = ['--disable-warning=ExperimentalWarning', '--conditions=pawl-source'];
  const child: ChildProcess = spawn(process.execPath, [...flags, program, ...args]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return new Running(child);
}

describe('a program without handlers', () => {
  it('C6: is not ended by a lease that it lost: its own code decides, told once by the helper and by the signal', async () => {
    const { code, stdout, stderr } = await start('lost').ended;
    expect(stdout.trim().split('\n')).toEqual([
      'aborted PAWL_LEASE_AT_RISK',
      'work done',
      'rejected PAWL_LEASE_LOST',
    ]);
    expect([code, stderr]).toEqual([7, '']);
  });

  it('C2: ends by itself after its work, although a renewal was under way, and renews nothing more', async () => {
    const { code, stdout } = await start('late').ended;
    expect([code, stdout]).toEqual([0, 'released\nrenewed since: 0\n']);
  });
});

describe('SIGTERM', () => {
  it('L1: a program that closes its client on it leaves nobody waiting for an expiry', async () => {
    const holder = start('stop', bench.db);
    await holder.prints('ready');
    const engine = await sqliteEngine({ path: bench.db });
    const pawl = open(engine);
    const waits = ['x', 'y', 'z'].map((name) => pawl.acquire(name));
    holder.child.kill('SIGTERM');
    const leases = await Promise.all(waits);
    expect(leases.every((lease) => lease.held)).toBe(true);
    expect(await holder.ended).toMatchObject({ code: 0, stdout: 'ready\nclosed\n' });
    await pawl.close();
    await engine.close();
  });

  it('L1: pawl run gives its lock back when it is told to end, however long its TTL', async () => {
    const holder = bench.start(['run', 'x', '--ttl', '10m', '--', 'sh', '-c', 'echo ready; exec sleep 600']);
    await holder.prints('ready');
    const waiter = bench.start(['run', 'x', '--', 'echo', 'next']);
    await bench.untilWaiting('x');
    holder.child.kill('SIGTERM');
    expect((await holder.ended).code).toBe(143);
    expect(await waiter.ended).toMatchObject({ code: 0, stdout: 'next\n' });
  });

  it.each(['0', '-0', '-1', '0.4', '9007199254740992', '1e300', 'null'])(
    'L1: the command refuses a TTL of %s as the client does, and runs nothing',
    async (ttl) => {
      const { code, stdout } = await bench.run('run', 'x', `--ttl=${ttl}`, '--', 'echo', 'ran');
      expect([code, stdout]).toEqual([64, '']);
    },
  );
});
