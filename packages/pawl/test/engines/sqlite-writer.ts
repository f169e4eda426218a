/** The process that the conformance suite kills: `node sqlite-writer.ts PATH PREFIX`. */
import { writeSync } from 'node:fs';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { writeWithoutEnd } from '../../src/testing/index.ts';

const [path = '', prefix = ''] = process.argv.slice(2);
await writeWithoutEnd(await sqliteEngine({ path }), prefix, (line) => void writeSync(1, `${line}\n`));
