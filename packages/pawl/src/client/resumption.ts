import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { LeaseLostError, NotHeldError, type PawlError } from '../errors.ts';
import type { GrantedLock, LockService, TransferAnswer } from '../node/service.ts';
import type { Handover } from './handover.ts';
import type { CheckedSettings } from './options.ts';
import type { Applicant, ClientSession } from './session.ts';
import { settle, within } from './settle.ts';

export interface ResumptionContext {
  readonly service: LockService;
  readonly clock: Clock;
}

/** A lease on its way from another process. Until it has arrived, its new session is in use: it is renewed, and not closed for want of a lease. */
export class Resumption implements Applicant {
  readonly requestId = randomUUID();
  readonly #context: ResumptionContext;
  readonly #session: ClientSession;
  readonly #handover: Handover;
  readonly #settings: CheckedSettings;
  readonly #ended = Promise.withResolvers<never>();
  #over = false;

  constructor(
    context: ResumptionContext,
    session: ClientSession,
    handover: Handover,
    settings: CheckedSettings,
  ) {
    this.#context = context;
    this.#session = session;
    this.#handover = handover;
    this.#settings = settings;
    this.#ended.promise.catch(ignore);
  }

  /** @throws NotHeldError, LeaseLostError where it takes longer than the TTL or the new session ends, and what the engine refuses */
  async run(): Promise<readonly GrantedLock[]> {
    const { name, ttlMs } = this.#handover;
    if (this.#session.ended !== undefined) throw this.#lost('its session ended', this.#session.ended);
    this.#session.addApplicant(this);
    try {
      const transfer = within(this.#context.clock, ttlMs, this.#transfer());
      const answered = await Promise.race([transfer, this.#ended.promise]);
      if (answered === undefined) throw this.#lost(`no engine answered within its TTL of ${ttlMs} ms`);
      const answer = answered.value;
      if (answer.kind === 'notHeld')
        throw new NotHeldError(name, 'the exported lease expired, or was resumed before');
      await Promise.race([this.#session.untilFresh(), this.#ended.promise]);
      return answer.grants;
    } catch (error) {
      this.#over = true;
      if (!(error instanceof NotHeldError)) this.#giveBack();
      throw error;
    } finally {
      this.#session.removeApplicant(this);
    }
  }

  /** It has asked for nothing that could be granted as news. */
  granted(): void {}

  async position(): Promise<null> {
    return null;
  }

  turnedAway(error: PawlError): void {
    this.#ended.reject(this.#lost('its session ended', error));
  }

  get #id() {
    return { session: this.#session.id, request: this.requestId };
  }

  #transfer(): Promise<TransferAnswer> {
    const { name, token, session, request } = this.#handover;
    const { service, clock } = this.#context;
    const from = { session, request };
    const attempt = () => service.transfer(from, [{ name, token }], this.#id, this.#settings.owner, true);
    return settle(attempt, { clock, goOn: () => !this.#over && this.#session.ended === undefined });
  }

  /** Remembered, so that a transfer that is still on its way comes to nothing. */
  #giveBack(): void {
    const { service, clock } = this.#context;
    const goOn = () => this.#session.ended === undefined;
    if (goOn())
      settle(() => service.cancel(this.#id, [this.#handover.name], false), { clock, goOn }).catch(ignore);
  }

  #lost(reason: string, cause?: PawlError): LeaseLostError {
    const { name, token } = this.#handover;
    return new LeaseLostError(name, token, reason, { cause });
  }
}

function ignore(): void {}
