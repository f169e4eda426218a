/** What a worker of the demonstration is asked to do. */
export interface Task {
  readonly locks: string;
  readonly ledger: string;
  readonly ttlMs: number;
  readonly adds: number;
  readonly fenced: boolean;
  /** A file to wait for between check and write; `undefined` for no wait. */
  readonly gate?: string | undefined;
}

/** What a worker tells. Tokens are decimal strings. */
export type Report =
  | { readonly kind: 'read'; readonly token: string; readonly balance: number }
  /** It has checked its lease, and nothing but the write comes next. */
  | { readonly kind: 'checked'; readonly token: string }
  | { readonly kind: 'wrote'; readonly token: string; readonly balance: number }
  /** It was told that its lease is over, after it wrote. */
  | { readonly kind: 'lost'; readonly token: string }
  | { readonly kind: 'refused'; readonly token: string; readonly highest: string };
