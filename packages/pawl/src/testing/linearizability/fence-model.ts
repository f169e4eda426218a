import type { Token } from '../../token.ts';
import type { Model } from './model.ts';
import type { FencedOperation } from './operations.ts';

/** One resource behind a fence: S7 (a token is accepted if it is not lower than the highest honoured), S8 (it can be raised without a write). */
export const fenceModel: Model<FencedOperation, Token> = {
  initial: 0n,
  step(highest, { token, reply }) {
    if (reply === 'refused') return token < highest ? [highest] : [];
    if (reply === 'unknown') return token > highest ? [token] : [];
    return token >= highest ? [token] : [];
  },
  key: (highest) => `${highest}`,
  describe: (highest) => `the highest token that it has honoured is ${highest}`,
};
