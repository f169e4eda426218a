import { type Clock, sleep } from '../../clock.ts';
import { EngineUnavailableError } from '../../errors.ts';

/** The methods of an engine that can fail. */
export type EngineMethod =
  | 'read'
  | 'list'
  | 'commit'
  | 'openSession'
  | 'keepAlive'
  | 'endSession'
  | 'forgetSessions'
  | 'raiseVersion';

/**
 * What shall go wrong with one call: `refused`: it does not happen, and the caller is told so. `lost`: it happens, but the
 * caller is told that it may not have. `silent`: it happens, but no answer ever comes. `delayMs` and `replyDelayMs`
 * hold the call back before it happens, and its answer after. `never`: it does not happen and no answer comes.
 */
export interface Fault {
  readonly kind?: 'refused' | 'lost' | 'silent' | 'never';
  readonly delayMs?: number;
  readonly replyDelayMs?: number;
}

/** Faults of a memory engine, to be set and changed while it runs. */
export class MemoryFaults {
  /** While true every call is refused. */
  unreachable = false;
  /** Decides for each call; `undefined` lets it pass. */
  onCall: ((method: EngineMethod) => Fault | undefined) | undefined;
  /** Which wakes are delivered, and how often: 0 loses it, 2 doubles it. */
  onWake: ((inbox: string, message: string) => number) | undefined;
  /** How many calls of each method were made. */
  readonly calls = new Map<EngineMethod, number>();

  /** Lets the next call of `method` fail, and no other. */
  failNext(method: EngineMethod, fault: Fault): void {
    const before = this.onCall;
    this.onCall = (called) => {
      if (called !== method) return before?.(called);
      this.onCall = before;
      return fault;
    };
  }

  /** Runs `call` with whatever shall go wrong with it. */
  async run<T>(method: EngineMethod, clock: Clock, call: () => T): Promise<T> {
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
    const fault = this.unreachable ? { kind: 'refused' as const } : this.onCall?.(method);
    if (fault?.delayMs !== undefined) await sleep(clock, fault.delayMs);
    if (fault?.kind === 'never') return new Promise<never>(() => {});
    if (fault?.kind === 'refused') {
      throw new EngineUnavailableError(`The memory engine refused ${method}, as its faults say.`, 'definite');
    }
    const value = call();
    if (fault?.replyDelayMs !== undefined) await sleep(clock, fault.replyDelayMs);
    if (fault?.kind === 'silent') return new Promise<never>(() => {});
    if (fault?.kind === 'lost') {
      throw new EngineUnavailableError(
        `The memory engine lost the answer to ${method}, as its faults say.`,
        'indefinite',
      );
    }
    return value;
  }
}
