/** A process of its own: `node etcd-child.ts <JSON list of options>` opens each and closes it, prints what came of it, and ends once nothing is open. */

import { type EtcdEngineOptions, etcdEngine } from '../../src/engines/etcd/index.ts';
import { isPawlError } from '../../src/errors.ts';

async function attempt(options: EtcdEngineOptions): Promise<object> {
  try {
    const engine = await etcdEngine(options);
    await engine.read({ keys: ['x'], ranges: [] });
    await engine.close();
    return { opened: true };
  } catch (error) {
    if (!isPawlError(error)) return { untyped: String(error) };
    const { code, outcome, message } = error;
    return { code, outcome, message };
  }
}

const attempts: EtcdEngineOptions[] = JSON.parse(process.argv[2] ?? '[]');
process.stdout.write(JSON.stringify(await Promise.all(attempts.map(attempt))));
