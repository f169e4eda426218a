import type { Transport } from '../../protocol/transport.ts';

/** Opens connections: WebSockets, or a pair of functions in a test. */
export interface Dialer {
  /**
   * @throws UnauthenticatedError or ForbiddenError where the server refuses this client, which another attempt cannot help; any
   *   other error where it cannot be reached.
   */
  dial(url: string): Promise<Transport>;
}
