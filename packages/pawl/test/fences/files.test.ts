import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Bearer } from '../../src/fences/bearer.ts';
import { fileFence } from '../../src/fences/files/index.ts';
import { fencedValue } from './fenced-value.ts';

let folder: string;
let path: string;
const children = new Set<ChildProcess>();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-file-fence-'));
  path = join(folder, 'app.conf');
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  rmSync(folder, { recursive: true, force: true });
});

const stale = expect.objectContaining({ code: 'PAWL_STALE_TOKEN' });
const usage = expect.objectContaining({ code: 'PAWL_FENCE_USAGE' });
const content = () => readFileSync(path, 'utf8');

describe('the fence around a file', () => {
  let made = 0;
  fencedValue(async () => {
    made += 1;
    const file = join(folder, `value-${made}`);
    const fence = fileFence(file);
    return {
      raise: (bearer) => fence.raise(bearer),
      write: (bearer, value) => fence.write(bearer, `${value}`),
      read: async () => (existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0),
    };
  });

  it('S7: refuses a lower token, accepts an equal and a higher one, and leaves nothing else in the folder', async () => {
    const fence = fileFence(path);
    expect(await fence.highest()).toBeUndefined();
    expect(readdirSync(folder)).toEqual([]);
    await fence.write(2n, 'two');
    await expect(fence.write(1n, 'one')).rejects.toThrow(stale);
    expect(content()).toBe('two');
    await fence.write({ token: 2n }, 'two again');
    await fence.write(3n, Buffer.from('three'));
    await expect(fence.write(2n, 'two')).rejects.toMatchObject({
      resource: 'app.conf',
      token: 2n,
      highest: 3n,
    });
    expect(content()).toBe('three');
    expect(await fence.highest()).toBe(3n);
    expect(readdirSync(folder).sort()).toEqual(['app.conf', 'app.conf.pawl-fence']);
  });

  it.each([
    ['no token', undefined, 'PAWL_MISSING_TOKEN'],
    ['null', null, 'PAWL_MISSING_TOKEN'],
    ['a number', 3, 'PAWL_INVALID_TOKEN'],
    ['a text', '3', 'PAWL_INVALID_TOKEN'],
    ['zero', 0n, 'PAWL_INVALID_TOKEN'],
  ])('S7: refuses %s, and nothing is written', async (_what, bearer, code) => {
    const fence = fileFence(path);
    await expect(fence.write(bearer as Bearer, 'x')).rejects.toMatchObject({ code });
    await expect(fence.raise(bearer as Bearer)).rejects.toMatchObject({ code });
    expect(readdirSync(folder)).toEqual([]);
  });

  it('S8: after a raise, who read before it can no longer write', async () => {
    writeFileSync(path, '100');
    const [late, current] = [fileFence(path), fileFence(path)];
    await late.raise(1n);
    const seen = Number(content());
    await current.raise(2n);
    const balance = Number(content());
    await expect(late.write(1n, `${seen + 1}`)).rejects.toThrow(stale);
    await current.write(2n, `${balance + 10}`);
    expect(content()).toBe('110');
  });

  it('S7: a token that is outdone while its data still comes in is refused', async () => {
    const fence = fileFence(path);
    await fence.write(1n, 'old');
    async function* slow() {
      yield 'first part, ';
      await fence.raise(2n);
      yield 'second part';
    }
    await expect(fence.write(1n, slow())).rejects.toThrow(stale);
    expect(content()).toBe('old');
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it('S7: writes nothing where the state of the fence goes away under a write', async () => {
    const fence = fileFence(path);
    await fence.write(1n, 'old');
    async function* slow() {
      yield 'new';
      rmSync(`${path}.pawl-fence`);
    }
    await expect(fence.write(1n, slow())).rejects.toThrow(usage);
    expect(content()).toBe('old');
  });

  it('leaves the old content where the data ends in an error', async () => {
    const fence = fileFence(path);
    await fence.write(1n, 'old');
    async function* broken() {
      yield 'half';
      throw new Error('the source broke');
    }
    await expect(fence.write(2n, broken())).rejects.toThrow('the source broke');
    expect(content()).toBe('old');
    expect(readdirSync(folder)).toHaveLength(2);
    expect(await fence.highest()).toBe(2n);
  });

  it('keeps permissions, and follows a link to the file and its fence', async () => {
    writeFileSync(path, 'secret');
    chmodSync(path, 0o640);
    const link = join(folder, 'link');
    symlinkSync(path, link);
    await fileFence(link).write(5n, 'new secret');
    expect(content()).toBe('new secret');
    expect(statSync(path).mode & 0o777).toBe(0o640);
    await expect(fileFence(path).raise(4n)).rejects.toThrow(stale);
    expect(existsSync(`${link}.pawl-fence`)).toBe(false);
  });

  it('refuses what is not a file, and options that make no sense', async () => {
    mkdirSync(path);
    await expect(fileFence(path).write(1n, 'x')).rejects.toThrow(usage);
    await expect(fileFence(join(folder, 'none', 'x')).write(1n, 'x')).rejects.toMatchObject({
      code: 'ENOENT',
    });
    for (const wrong of ['', 5, undefined, 'a\0b']) expect(() => fileFence(wrong as string)).toThrow(usage);
    for (const busyMs of [-1, 1.5, Number.NaN]) expect(() => fileFence(path, { busyMs })).toThrow(usage);
  });

  it.skipIf(!existsSync('/proc/self/fd'))('leaves nothing open, whether it wrote or failed', async () => {
    async function* broken() {
      yield 'half';
      throw new Error('the source broke');
    }
    const fence = fileFence(path);
    await fence.write(1n, 'old');
    await expect(fence.write(1n, broken())).rejects.toThrow('the source broke');
    await expect(fence.write(0n, 'late')).rejects.toThrow();
    const open = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return 'closed since';
      }
    });
    expect(open.filter((each) => each.startsWith(folder))).toEqual([]);
  });

  it.each([
    [
      'is something else',
      () => 'some notes that are long enough to be more than the head of a database'.repeat(20),
    ],
    ['is damaged', (state: Buffer) => state.fill(0xff, 100)],
  ])('S7: writes nothing where the state of the fence %s, and says what to do', async (_what, spoil) => {
    const fence = fileFence(path);
    await fence.write(1n, 'old');
    const state = `${path}.pawl-fence`;
    writeFileSync(state, spoil(readFileSync(state)));
    for (const attempt of [() => fence.write(2n, 'new'), () => fence.raise(2n), () => fence.highest()]) {
      await expect(attempt()).rejects.toMatchObject({
        code: 'PAWL_FENCE_USAGE',
        message: expect.stringContaining('is not the state of a fence, or is damaged'),
      });
    }
    expect(content()).toBe('old');
  });

  it('fails closed while another is in the middle of a write, and says so', async () => {
    const fence = fileFence(path, { busyMs: 0 });
    await fence.write(1n, 'old');
    const other = new DatabaseSync(`${path}.pawl-fence`);
    other.exec('BEGIN IMMEDIATE');
    await expect(fence.write(1n, 'new')).rejects.toMatchObject({ code: 'PAWL_FENCE_BUSY', retryable: true });
    other.close();
    expect(content()).toBe('old');
    await fence.write(1n, 'new');
    expect(content()).toBe('new');
  });
});

describe('whatever stale and current writers do to a file', () => {
  it('S7, S8: no effect of a lower token lands after a higher one was honoured', async () => {
    const step = fc.record({
      token: fc.integer({ min: 1, max: 5 }),
      act: fc.constantFrom('raise' as const, 'write' as const, 'slow write' as const),
    });
    let made = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        made += 1;
        const own = join(folder, `${made}`);
        const landed: number[] = [];
        // All at once: the fence sees them in some order, and each content says which token it is of.
        await Promise.allSettled(
          steps.map(async ({ token, act }) => {
            const fence = fileFence(own);
            if (act === 'raise') return fence.raise(BigInt(token));
            const data = act === 'write' ? `${token}` : ['', `${token}`];
            await fence.write(BigInt(token), data);
            landed.push(Number(readFileSync(own, 'utf8')));
          }),
        );
        expect(landed).toEqual([...landed].sort((a, b) => a - b));
        const highest = Math.max(0, ...steps.map(({ token }) => token));
        expect(await fileFence(own).highest()).toBe(highest === 0 ? undefined : BigInt(highest));
        if (existsSync(own)) expect(Number(readFileSync(own, 'utf8'))).toBeLessThanOrEqual(highest);
      }),
      { numRuns: 25 },
    );
  }, 60_000);
});

describe('several processes at one file', () => {
  it('S7: whatever they do at once, what is read is whole and no lower token follows a higher one', async () => {
    const read = reader();
    const writers = [3, 1, 4, 2, 6, 5].map((token) => writer(token, 2000));
    await writers[4]?.prints('wrote 5');
    read();
    const refused = writers.filter((each) => each.token < 6).map((each) => each.ended);
    // All others end by themselves, since they are refused; meanwhile the file is read.
    let done = false;
    void Promise.all(refused).then(() => {
      done = true;
    });
    while (!done) {
      read();
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (const each of writers) if (each.token < 6) expect(each.output()).toMatch(/refused\n$/);
    writers[4]?.kill();
    await writers[4]?.ended;
    expect(read()).toBe(6);
  }, 60_000);

  it('S7: a process may be killed at any point: the content stays whole, the token high, and the next goes on', async () => {
    const read = reader();
    for (let token = 1; token <= 12; token += 1) {
      const each = writer(token, 300_000);
      await each.prints(`wrote ${token % 3}`);
      // Somewhere in one of the next writes.
      for (let turns = 0; turns < token * 7; turns += 1)
        await new Promise((resolve) => setImmediate(resolve));
      each.kill();
      await each.ended;
      expect(read()).toBe(token);
      expect(await fileFence(path).highest()).toBe(BigInt(token));
      await expect(fileFence(path).write(BigInt(token) - 1n, 'late')).rejects.toThrow();
    }
    await fileFence(path).write(13n, 'in peace');
    expect(content()).toBe('in peace');
    // What the killed ones left is gone, and the journal of the state with it.
    expect(readdirSync(folder).sort()).toEqual(['app.conf', 'app.conf.pawl-fence']);
  }, 90_000);
});

/** Reads the file and checks that it is whole, and that tokens only go up. */
function reader(): () => number {
  let last = 0;
  return () => {
    if (!existsSync(path)) return last;
    const [body = '', sum] = content().split('\n');
    expect(createHash('sha256').update(body).digest('hex')).toBe(sum);
    const token = Number(body.split(' ')[0]);
    expect(token).toBeGreaterThanOrEqual(last);
    last = token;
    return token;
  };
}

function writer(token: number, size: number) {
  const program = fileURLToPath(new URL('./file-writer.ts', import.meta.url));
  const child = spawn(process.execPath, [program, path, `${token}`, `${size}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const prints = async (text: string) => {
    while (!output.includes(`${text}\n`)) {
      const more = await Promise.race([
        new Promise((resolve) => child.stdout.once('data', () => resolve(true))),
        ended,
      ]);
      if (more === undefined && !output.includes(`${text}\n`))
        throw new Error(`ended without "${text}": ${output}`);
    }
  };
  return { token, ended, prints, output: () => output, kill: () => child.kill('SIGKILL') };
}
