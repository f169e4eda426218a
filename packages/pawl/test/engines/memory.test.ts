import { describe, it } from 'vitest';
import { engineConformance, MemoryStore, memoryEngine, SimulatedClock } from '../../src/testing/index.ts';

engineConformance({
  engine: 'memory',
  describe,
  it,
  start: async () => {
    const clock = new SimulatedClock();
    const store = new MemoryStore();
    return {
      openEngine: async () => memoryEngine({ store, clock }),
      passTime: (ms) => clock.advance(ms),
      stop: async () => {},
    };
  },
});
