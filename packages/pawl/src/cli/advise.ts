import { randomBytes } from 'node:crypto';
import type { Engine } from '../engines/engine.ts';
import { advise, renderAdvice } from '../lab/advise/command.ts';
import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withStore } from './store.ts';

/** `pawl advise` */
export async function adviseTtl({ options }: Parsed<'advise'>): Promise<number> {
  const { for: forMs, work, crashes, pauses, json, db } = options;
  const run = async (engine?: Engine) => {
    const probed = engine && { guarantees: engine.guarantees, ask: roundTrip(engine) };
    const report = await advise(
      { forMs, workMs: work, crashRate: crashes, pauses, engine: probed },
      Math.random,
    );
    process.stdout.write(json ? toJson(report) : renderAdvice(report));
    return EXIT.ok;
  };
  return db === undefined ? run() : withStore(db, (_pawl, engine) => run(engine));
}

/** What a renewal costs: the commit of a keep-alive. */
function roundTrip(engine: Engine): () => Promise<unknown> {
  const session = `advise-${randomBytes(12).toString('hex')}`;
  return () => engine.openSession(session, engine.guarantees.minTtlMs * 100);
}
