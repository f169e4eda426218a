import { Fence, MissingTokenError, StaleTokenError } from '../fences/index.ts';
import type { Token } from '../token.ts';

/** A value that anybody may write, and who did. */
export class Resource {
  value: number | null = null;
  readonly writers: string[] = [];

  write(who: string, value: number): boolean {
    this.value = value;
    this.writers.push(who);
    return true;
  }
}

/** The same behind Pawl's fence. */
export class FencedResource extends Resource {
  readonly #fence = new Fence('value');

  raise(token: Token): boolean {
    return accepted(() => this.#fence.raise(token));
  }

  /** @returns whether the fence accepted it. */
  writeFenced(who: string, value: number, token: Token | null): boolean {
    return accepted(() => this.#fence.write(token, () => void this.write(who, value)));
  }
}

function accepted(act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if (error instanceof StaleTokenError || error instanceof MissingTokenError) return false;
    throw error;
  }
}
