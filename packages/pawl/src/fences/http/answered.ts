import type { IncomingMessage, ServerResponse } from 'node:http';

/** What is watched of a response. */
export type Answering = Pick<ServerResponse, 'end' | 'destroy' | 'once' | 'on' | 'headersSent' | 'closed'> & {
  readonly req?: Pick<IncomingMessage, 'socket'>;
};

/**
 * Calls `done` when the handler has answered: when it ends the response, or gives it up, or when the client goes away while a stream
 * is piped into it or before, since nobody would end it then. Not at once when a client goes away: that does not stop a handler.
 *
 * @returns says that whoever answers has done all it does: from then on the answer is over when the connection is, too.
 */
export function whenAnswered(response: Answering, done: () => void): () => void {
  let { closed } = response;
  let handedOver = false;
  const { end, destroy } = response;
  response.end = ((...args: Parameters<typeof end>) => {
    try {
      return end.apply(response, args);
    } finally {
      done();
    }
  }) as typeof end;
  response.destroy = (error) => {
    try {
      return destroy.call(response, error);
    } finally {
      done();
    }
  };
  const overIf = (condition: boolean) => {
    if (condition) done();
  };
  response.on('pipe', () => overIf(closed));
  response.on('unpipe', () => overIf(closed));
  response.once('close', () => {
    closed = true;
    overIf(handedOver || (response.headersSent && closedHere(response)));
  });
  return () => {
    handedOver = true;
    overIf(closed);
  };
}

/** Frameworks close the connection of a handler that fails in the middle of its answer. */
function closedHere({ req }: Answering): boolean {
  const socket = req?.socket;
  return socket?.destroyed === true && !socket.readableEnded && socket.errored === null;
}
