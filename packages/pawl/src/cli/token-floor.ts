import { EXIT } from './exit-codes.ts';
import { toJson } from './json.ts';
import type { Parsed } from './options.ts';
import { withStore } from './store.ts';

/** `pawl token-floor` */
export async function tokenFloor({ options }: Parsed<'token-floor'>): Promise<number> {
  const { 'at-least': floor, json, db } = options;
  return withStore(db, async (_pawl, engine) => {
    const before = await engine.raiseVersion(floor);
    const raised = before <= floor;
    const text = raised
      ? `Raised from ${before}: every later token is higher than ${floor}.\n`
      : `Nothing to raise: tokens are above ${before} already.\n`;
    process.stdout.write(json ? toJson({ before, above: raised ? floor : before }) : text);
    return EXIT.ok;
  });
}
