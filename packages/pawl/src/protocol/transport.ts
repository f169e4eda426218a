/** Why a transport closed. */
export interface Closing {
  /** A close code of WebSocket: 1000 to 4999. */
  readonly code: number;
  readonly reason: string;
}

/** What the user of a transport is told. */
export interface TransportEvents {
  onFrame(frame: string): void;
  /** What had gathered in the buffer is with the network. */
  onDrain?(): void;
  /** Called once, whoever closed it. */
  onClose(closing: Closing): void;
}

/** A connection that carries frames in both directions, in order: a WebSocket, or a pair of functions in a test. */
export interface Transport {
  /** To be called once, before anything is sent. No frame is lost that arrived earlier. */
  start(events: TransportEvents): void;
  /** Sends a frame; once closed it does nothing. */
  send(frame: string): void;
  /** How much was sent that the other side has not taken yet. */
  readonly bufferedBytes: number;
  /** Takes no frames off the network for a while: the other side has to wait, too. */
  pause(): void;
  resume(): void;
  /** Calls `run` once all that is ready to run has run: until then outgoing messages gather. */
  defer(run: () => void): void;
  /** Calls `run` once other connections had their turn. */
  yieldTo(run: () => void): void;
  /** Says goodbye and closes. */
  close(code: number, reason: string): void;
  /** Cuts the connection. */
  cut(): void;
}

/** Close codes that say more than WebSocket's own. */
export const CLOSE_CODES = {
  /** The server stops; go on elsewhere. */
  goingAway: 1001,
  /** A frame that is no list of messages. */
  malformed: 4400,
  unauthenticated: 4401,
  limit: 4429,
} as const;

/** The WebSocket subprotocol of this version. */
export const SUBPROTOCOL = 'pawl.v1';
export const SESSION_PATH = '/v1/session';
