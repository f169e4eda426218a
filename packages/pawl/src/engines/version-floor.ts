import { InvalidArgumentError } from '../errors.ts';
import { MAX_TOKEN } from '../token.ts';
import type { Version } from './engine.ts';

/** @throws InvalidArgumentError where versions cannot be raised to `version`: there would be none left above it. */
export function checkVersionFloor(version: unknown): asserts version is Version {
  if (typeof version === 'bigint' && version >= 1n && version < MAX_TOKEN) return;
  throw new InvalidArgumentError('version', `a bigint from 1 to ${MAX_TOKEN - 1n}`, version);
}
