import type { CommitResult, ConditionalWrite, Version, Wake } from './engine.ts';

type Listener = (message: string, version: Version) => void;

/**
 * The inboxes that are listened to at this very engine. What its own commits send there is handed over once they are committed, and does not go
 * through the store, which would cost it a write more and whoever waits a while. Where the answer to a commit is lost they are lost with it, as any
 * wake may be.
 */
export class OwnInboxes {
  readonly #listeners = new Map<string, Set<Listener>>();

  /**
   * @param stop ends the subscription to what others send there through the store.
   * @returns a function that stops both.
   */
  subscribe(inbox: string, listener: Listener, stop: () => void): () => void {
    const listeners = this.#listeners.get(inbox) ?? new Set();
    this.#listeners.set(inbox, listeners.add(listener));
    return () => {
      stop();
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(inbox) === listeners) this.#listeners.delete(inbox);
    };
  }

  /** @param commit commits what is left to be sent through the store. */
  async commit(
    batch: readonly ConditionalWrite[],
    commit: (batch: readonly ConditionalWrite[]) => Promise<readonly CommitResult[]>,
  ): Promise<readonly CommitResult[]> {
    const own: Wake[][] = [];
    const rest = batch.map((write, i) => {
      const mine = write.wakes.filter(({ inbox }) => this.#listeners.has(inbox));
      if (mine.length === 0) return write;
      own[i] = mine;
      return { ...write, wakes: write.wakes.filter(({ inbox }) => !this.#listeners.has(inbox)) };
    });
    const results = await commit(rest);
    own.forEach((wakes, i) => {
      const result = results[i];
      if (result?.kind !== 'committed') return;
      for (const { inbox, message } of wakes)
        for (const tell of [...(this.#listeners.get(inbox) ?? [])]) tell(message, result.version);
    });
    return results;
  }

  close(): void {
    this.#listeners.clear();
  }
}
