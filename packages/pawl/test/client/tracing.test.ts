import { describe, expect, it } from 'vitest';
import { open } from '../../src/client/open.ts';
import type { PawlSpan, PawlTracer } from '../../src/client/tracing.ts';
import { MemoryFaults, MemoryStore, memoryEngine, SimulatedTime } from '../../src/testing/index.ts';

/** A span as an exporter would get it. */
interface Recorded {
  readonly name: string;
  readonly context: { traceId: string; spanId: string; traceFlags: number };
  readonly attributes: Record<string, unknown>;
  readonly links: unknown[];
  status: unknown;
  ended: boolean;
}

/** Has what the tracers of `@opentelemetry/api` have, and keeps what they are told. */
class RecordingTracer implements PawlTracer {
  readonly spans: Recorded[] = [];

  startSpan(name: string, options?: { attributes?: Record<string, string | number | boolean> }): PawlSpan {
    const id = String(this.spans.length + 1);
    const context = { traceId: id.padStart(32, '0'), spanId: id.padStart(16, '0'), traceFlags: 1 };
    const attributes: Record<string, unknown> = { ...options?.attributes };
    const span: Recorded = { name, context, attributes, links: [], status: undefined, ended: false };
    this.spans.push(span);
    return {
      spanContext: () => span.context,
      setAttribute: (key, value) => {
        attributes[key] = value;
      },
      addLink: (link) => span.links.push(link),
      recordException: () => {},
      setStatus: (status) => {
        span.status = status;
      },
      end: () => {
        span.ended = true;
      },
    };
  }
}

function setup() {
  const tracer = new RecordingTracer();
  const engine = memoryEngine({ store: new MemoryStore() });
  return { tracer, engine, pawl: open(engine, { tracer }) };
}

describe('traces', () => {
  it('an acquire is a span, and one that waits is linked to the trace of the holder', async () => {
    const { tracer, engine, pawl } = setup();
    const held = await pawl.acquire('x');
    const waiting = pawl.acquire('x', { waitMs: 5000 });
    await expect.poll(async () => (await pawl.inspect('x')).waiting).toBe(1);
    await held.release();
    const lease = await waiting;
    const [first, second] = tracer.spans;
    expect(first).toMatchObject({
      name: 'pawl.acquire',
      ended: true,
      links: [],
      attributes: { 'pawl.token': String(held.token), 'pawl.locks': 'x', 'pawl.mode': 'exclusive' },
    });
    expect(second).toMatchObject({
      ended: true,
      links: [{ context: first?.context }],
      attributes: { 'pawl.token': String(lease.token), 'pawl.queued': true },
    });
    expect((await pawl.inspect('x')).holders[0]?.owner.traceparent).toBe(
      `00-${second?.context.traceId}-${second?.context.spanId}-01`,
    );
    await lease.release();
    await pawl.close();
    await engine.close();
  });

  it('a holder that shows no trace, or what is none, is waited for without a link', async () => {
    const { tracer, engine, pawl } = setup();
    const untraced = open(engine);
    for (const owner of [{}, { traceparent: '00-short-1-01' }]) {
      const held = await untraced.acquire('x', { owner });
      const waiting = pawl.acquire('x', { waitMs: 5000 });
      await expect.poll(async () => (await pawl.inspect('x')).waiting).toBe(1);
      await held.release();
      await (await waiting).release();
      expect(tracer.spans.at(-1)).toMatchObject({ ended: true, links: [] });
      expect(tracer.spans.at(-1)?.attributes).toMatchObject({ 'pawl.queued': true });
    }
    await untraced.close();
    await pawl.close();
    await engine.close();
  });

  it('an acquire that fails is a span that says why', async () => {
    const { tracer, engine, pawl } = setup();
    await pawl.acquire('x');
    expect(await pawl.tryAcquire('x')).toBeNull();
    expect(tracer.spans[1]).toMatchObject({ ended: true, status: { code: 2, message: 'PAWL_HELD' } });
    await pawl.close();
    await engine.close();
  });

  it.each(['startSpan', 'spanContext', 'setAttribute', 'addLink', 'recordException', 'setStatus', 'end'])(
    'a tracer whose %s throws harms no acquire',
    async (failure) => {
      let asked = 0;
      const fail = (call: string) => () => {
        if (call === failure) throw new Error(`${call} failed`);
      };
      const tracer: PawlTracer = {
        startSpan: () => {
          asked += 1;
          fail('startSpan')();
          return {
            spanContext: () => {
              fail('spanContext')();
              return { traceId: 'a'.repeat(32), spanId: 'a'.repeat(16), traceFlags: 1 };
            },
            setAttribute: fail('setAttribute'),
            addLink: fail('addLink'),
            recordException: fail('recordException'),
            setStatus: fail('setStatus'),
            end: fail('end'),
          };
        },
      };
      const engine = memoryEngine();
      const pawl = open(engine, { tracer });
      const held = await pawl.acquire('x');
      expect(await pawl.tryAcquire('x')).toBeNull();
      const waiting = pawl.acquire('x', { waitMs: 5000 });
      await expect.poll(async () => (await pawl.inspect('x')).waiting).toBe(1);
      await held.release();
      expect((await waiting).token).toBeGreaterThan(held.token);
      expect(asked).toBe(3);
      await pawl.close();
      await engine.close();
    },
  );

  it('S6: an engine that is silent about the holder holds up no acquire, nor its time-out', async () => {
    const time = new SimulatedTime();
    const clock = time.clock();
    const faults = new MemoryFaults();
    const engine = memoryEngine({ store: new MemoryStore(), clock, faults });
    const tracer = new RecordingTracer();
    const pawl = open(engine, { clock, tracer });
    await pawl.acquire('x');
    const waiting = pawl.acquire('x', { waitMs: 1000 }).catch((error: unknown) => error);
    faults.onCall = (method) => (method === 'read' ? { kind: 'never' } : undefined);
    let settled: unknown;
    void waiting.then((error) => {
      settled = error;
    });
    await time.advance(3000);
    expect(settled).toMatchObject({ code: 'PAWL_ACQUIRE_TIMEOUT' });
    faults.onCall = undefined;
    await pawl.close();
    await engine.close();
  });

  it('what is no tracer is refused', async () => {
    const engine = memoryEngine();
    expect(() => open(engine, { tracer: {} as PawlTracer })).toThrow(
      expect.objectContaining({ code: 'PAWL_INVALID_ARGUMENT' }),
    );
    await engine.close();
  });
});
