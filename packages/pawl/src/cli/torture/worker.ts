/** A worker of `pawl torture`: a program of its own, called with its settings as JSON. */
import { work } from '../../lab/torture/worker.ts';

// Loaded only by those who lock with Pawl: a worker may be started often.
await work(JSON.parse(process.argv[2] ?? '{}'), async (address) => {
  const { openStore } = await import('../store-address.ts');
  return openStore(address);
});
