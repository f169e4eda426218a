export { isToken, MAX_TOKEN, parseToken, type Token } from '../token.ts';
export type { Bearer, BearerRules, SequencerRules } from './bearer.ts';
export {
  FenceError,
  FenceUsageError,
  FenceVersionError,
  InvalidSequencerError,
  InvalidTokenError,
  MissingTokenError,
  StaleTokenError,
  TokenJumpError,
} from './errors.ts';
export { Fence } from './fence.ts';
