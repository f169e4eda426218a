import type { Clock } from '../clock.ts';
import type { Engine, EngineGuarantees } from '../engines/engine.ts';
import { LockNode } from '../node/lock-node.ts';
import type { SignGrant } from '../node/service.ts';
import type { PawlTracer } from '../protocol/tracer.ts';
import type { Authenticator } from './authenticator.ts';
import { Desk } from './desk.ts';
import { Sharers } from './fair-share.ts';
import type { Limits } from './limits.ts';
import { Load } from './load.ts';
import type { Log } from './log.ts';
import { measuredEngine } from './metrics/measured-engine.ts';
import { MeasuredService } from './metrics/measured-service.ts';
import { ServerMetrics } from './metrics/server-metrics.ts';
import { SessionTable } from './session-table.ts';
import { TracedDesk } from './tracing/traced-desk.ts';
import { Tracing } from './tracing/tracing.ts';

/** What the ways in, WebSocket and HTTP, have in common. */
export interface ServerParts {
  readonly clock: Clock;
  readonly limits: Limits;
  readonly log: Log;
  readonly guarantees: EngineGuarantees;
  readonly metrics: ServerMetrics;
  readonly sessions: SessionTable;
  readonly desk: Desk;
  readonly load: Load;
  readonly sharers: Sharers;
  /** `undefined` where nobody wants to hear of what is asked. */
  readonly tracing: Tracing | undefined;
  /** `undefined` where everybody may do everything. */
  readonly authenticator: Authenticator | undefined;
  /** Stops the node; the engine stays open. */
  close(): Promise<void>;
}

export interface PartsOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly log: Log;
  readonly authenticator?: Authenticator | undefined;
  readonly sign?: SignGrant | undefined;
  readonly tracer?: PawlTracer | undefined;
}

/** A node over the engine, with what guards and measures it. */
export function serverParts(options: PartsOptions): ServerParts {
  const { engine, clock, limits, log, authenticator, sign, tracer } = options;
  const metrics = new ServerMetrics();
  const node = new LockNode(measuredEngine(engine, clock, metrics), {
    clock,
    maxWaiters: limits.waitersPerLock,
    sign,
  });
  const service = new MeasuredService(node, clock, metrics);
  const tracing = tracer === undefined ? undefined : new Tracing(tracer, clock, log);
  const sessions = new SessionTable(tracing?.waits.hearing(service) ?? service, clock, limits, (session) =>
    tracing?.waits.sessionOver(session),
  );
  const deskOptions = { service, sessions, clock, limits, metrics };
  const stopHearing = engine.watchEndings((ended) => {
    for (const session of ended) {
      service.sessionOver(session);
      metrics.endings.add(sessions.ended(session), 'expired');
    }
  });
  metrics.addGauge(
    'pawl_queue_depth',
    'Acquires that wait in a queue through this server.',
    () => service.queueDepth,
  );
  metrics.addGauge('pawl_sessions', 'Sessions that are served here.', () => sessions.size);
  return {
    clock,
    limits,
    log,
    guarantees: engine.guarantees,
    metrics,
    sessions,
    desk: tracing === undefined ? new Desk(deskOptions) : new TracedDesk(deskOptions, tracing),
    load: new Load(limits),
    sharers: new Sharers(),
    tracing,
    authenticator,
    close: async () => {
      stopHearing();
      sessions.close();
      await service.close();
    },
  };
}
