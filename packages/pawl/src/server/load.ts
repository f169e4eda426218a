import type { Method } from '../protocol/calls.ts';
import { checkLimit, type Limits } from './limits.ts';

/** What keeps leases alive or gives locks back has precedence when there is too much to do. */
const PRECEDENCE: ReadonlySet<Method> = new Set([
  'keepAlive',
  'release',
  'cancel',
  'closeSession',
  'unlisten',
]);

/** How many requests a server works on at the moment. */
export class Load {
  readonly #limits: Limits;
  #requests = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /** @throws LimitError where there is too much to do already. */
  begin(method: Method): void {
    const counted = PRECEDENCE.has(method) ? this.#requests / 2 : this.#requests;
    checkLimit(this.#limits, 'requests', counted, 'try again later, or ask another server');
    this.#requests += 1;
  }

  end(): void {
    this.#requests -= 1;
  }
}
