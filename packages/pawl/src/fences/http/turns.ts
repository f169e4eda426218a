/** One after another, for each name: who comes waits until all before it are done. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** @returns what ends the turn, once it has come; calling it again does nothing. */
  async take(name: string): Promise<() => void> {
    const before = this.#last.get(name);
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#last.set(name, over);
    void over.then(() => {
      if (this.#last.get(name) === over) this.#last.delete(name);
    });
    await before;
    return resolve;
  }
}
