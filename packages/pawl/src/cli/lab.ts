import { labCommand } from '../lab/command.ts';
import type { Parsed } from './options.ts';

/** `pawl lab` */
export function lab({ options }: Parsed<'lab'>): Promise<number> {
  return labCommand(options, process);
}
