import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/cli/store-address.ts';
import { Arena } from './arena.ts';
import { TcpProxy } from './tcp-proxy.ts';

/** A store whose server can be hurt. */
export interface HurtableStore {
  /** The address to reach it at, through `port` in place of its own. */
  address(port: number): string;
  readonly port: number;
  readonly ttlMs: number;
  /** Each hurts the server and heals it again. */
  readonly injuries: readonly (() => Promise<void>)[];
}

/**
 * Three processes with a node each take turns on three locks, while: one of them is stopped for 3 × TTL, the network of another is cut,
 * and then stalls, for 2 × TTL each, and the server is hurt. After each, everybody has to go on. In the end the whole history is judged.
 */
export async function sufferFaults(store: HurtableStore): Promise<void> {
  const { ttlMs } = store;
  const arena = new Arena({ ttlMs });
  const proxy = new TcpProxy(store.port);
  try {
    const proxied = store.address(await proxy.listen());
    await arena.start([store.address(store.port), store.address(store.port), proxied]);
    const [first, second, third] = arena.workers;
    if (first === undefined || second === undefined || third === undefined)
      throw new Error('Workers are missing.');
    await arena.progress(5);

    first.signal('SIGSTOP');
    await sleep(3 * ttlMs);
    await arena.progress(3, [second, third]);
    first.signal('SIGCONT');
    await arena.progress(3);

    for (const passage of ['cut', 'stall'] as const) {
      proxy.set(passage);
      await sleep(2 * ttlMs);
      await arena.progress(3, [first, second]);
      proxy.set('pass');
      await arena.progress(3);
    }

    for (const injury of store.injuries) {
      await injury();
      await arena.progress(3);
    }
    const opened = await openStore(store.address(store.port));
    try {
      await arena.judge(opened.engine);
    } finally {
      await opened.close();
    }
  } finally {
    arena.stop();
    proxy.close();
  }
}
