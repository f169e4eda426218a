import { Counter, Gauge, Histogram } from './metric.ts';

/** Upper bounds in seconds: from a fast commit to a long wait. */
const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600,
];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** All that a server measures. */
export class ServerMetrics {
  readonly grants = new Counter('pawl_grants_total', 'Locks that were granted.');
  readonly waits = new Counter('pawl_waits_total', 'Acquires that had to wait in a queue.');
  readonly endings = new Counter('pawl_endings_total', 'Grants and waits that ended.', 'reason', [
    'released',
    'cancelled',
    'broken',
    'closed',
    'expired',
  ]);
  readonly refused = new Counter('pawl_refused_total', 'Requests that were answered with an error.', 'code', [
    'PAWL_HELD',
    'PAWL_ENGINE_UNAVAILABLE',
    'PAWL_LIMIT',
    'PAWL_UNAUTHENTICATED',
    'PAWL_FORBIDDEN',
  ]);
  readonly acquireSeconds = new Histogram(
    'pawl_acquire_seconds',
    'From an acquire to its grant, waits included.',
    SECONDS,
  );
  readonly handoverSeconds = new Histogram(
    'pawl_handover_seconds',
    'From a release to the grant of the next in line.',
    SECONDS,
  );
  readonly commitSeconds = new Histogram('pawl_commit_seconds', 'One commit of the engine.', SECONDS);
  readonly batchSize = new Histogram('pawl_batch_size', 'Conditional writes in one commit.', SIZES);
  readonly #gauges: Gauge[] = [];
  /** Open WebSocket connections. */
  connections = 0;

  constructor() {
    this.addGauge('pawl_connections', 'Open WebSocket connections.', () => this.connections);
  }

  /** Shows what `read` says at the moment. */
  addGauge(name: string, help: string, read: () => number): void {
    this.#gauges.push(new Gauge(name, help, read));
  }

  /** In the text format of Prometheus, version 0.0.4. */
  text(): string {
    const all = [
      this.grants,
      this.waits,
      this.endings,
      this.refused,
      this.acquireSeconds,
      this.handoverSeconds,
      this.commitSeconds,
      this.batchSize,
      ...this.#gauges,
    ];
    return `${all.map((metric) => metric.text()).join('\n')}\n`;
  }
}
