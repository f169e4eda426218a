import { describe, it } from 'vitest';
import { sqliteEngine } from '../../src/engines/sqlite/index.ts';
import { engineConformance } from '../../src/testing/index.ts';
import { newPath } from './sqlite-fixture.ts';

engineConformance({
  engine: 'sqlite',
  describe,
  it,
  ttlMs: 800,
  start: async () => {
    const path = newPath();
    return {
      openEngine: () => sqliteEngine({ path }),
      passTime: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      stop: async () => {},
    };
  },
});
