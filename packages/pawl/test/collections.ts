import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as NodeJS.GCFunction;

/** A collection of what is young, such as happens all the time; what is old is left alone. */
export function minorCollection(): void {
  collect({ type: 'minor' });
}

/** A collection of everything. */
export function majorCollection(): void {
  collect();
}
