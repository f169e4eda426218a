import type { Clock } from '../../clock.ts';
import type { Engine } from '../../engines/engine.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** The same engine, with its commits measured. */
export function measuredEngine(engine: Engine, clock: Clock, metrics: ServerMetrics): Engine {
  const commit: Engine['commit'] = async (batch) => {
    const fromMs = clock.monotonicMs();
    const results = await engine.commit(batch);
    metrics.commitSeconds.observe((clock.monotonicMs() - fromMs) / 1000);
    metrics.batchSize.observe(batch.length);
    return results;
  };
  const bound = new Map<PropertyKey, unknown>([['commit', commit]]);
  return new Proxy(engine, {
    get(_target, property) {
      if (bound.has(property)) return bound.get(property);
      const value = Reflect.get(engine, property, engine);
      if (typeof value !== 'function') return value;
      bound.set(property, value.bind(engine));
      return bound.get(property);
    },
  });
}
