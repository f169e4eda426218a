export { isToken, MAX_TOKEN, parseToken, type Token } from '../token.ts';
export type { Bearer } from './bearer.ts';
export {
  FenceError,
  FenceUsageError,
  InvalidTokenError,
  MissingTokenError,
  StaleTokenError,
} from './errors.ts';
export { Fence } from './fence.ts';
