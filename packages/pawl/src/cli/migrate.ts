import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withStore } from './store.ts';

/** `pawl migrate` */
export async function migrate({ options }: Parsed<'migrate'>): Promise<number> {
  return withStore(options.db, async (_pawl, engine) => {
    // Some engines look at their layout only once they are used.
    await engine.read({ keys: ['lock/'], ranges: [] });
    const { engine: name } = engine.guarantees;
    process.stdout.write(
      options.json ? toJson({ engine: name, ready: true }) : `The ${name} store is ready.\n`,
    );
    return EXIT.ok;
  });
}
