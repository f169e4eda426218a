import { createHash } from 'node:crypto';
import { fileFence } from '../../src/fences/files/index.ts';

/*
 * A process of its own that writes a fenced file again and again with one token, until it is refused or killed.
 * argv: path, token, size. Prints a line for each write that was accepted.
 */
const [path = '', token = '', size = ''] = process.argv.slice(2);
const fence = fileFence(path, { busyMs: 30_000 });

for (let count = 0; ; count += 1) {
  const body = `${token} ${count} ${String(count % 10).repeat(Number(size))}`;
  const data = `${body}\n${createHash('sha256').update(body).digest('hex')}\n`;
  try {
    await fence.write(BigInt(token), count % 2 === 0 ? data : [data.slice(0, 9), Buffer.from(data.slice(9))]);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'PAWL_STALE_TOKEN')) throw error;
    process.stdout.write('refused\n');
    break;
  }
  process.stdout.write(`wrote ${count}\n`);
}
