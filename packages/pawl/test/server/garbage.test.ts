import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('./garbage-child.ts', import.meta.url));

describe('a client and a server under load', () => {
  it('leave nothing of their cycles behind that small collections do not collect', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [program]);
    const left: number[] = JSON.parse(stdout);
    expect(left).toHaveLength(5);
    // Some 300 bytes; where what has gone is kept, some 4,500.
    expect(Math.min(...left)).toBeLessThan(1500);
  });
});
