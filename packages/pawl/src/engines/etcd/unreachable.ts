import { status } from '@grpc/grpc-js';

/** What to do, by what was said of a connection that failed. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [
    /unable to (verify|get)|self[- ]signed/i,
    'Its certificate comes from an authority that is not trusted here: give its certificate as tls.ca.',
  ],
  [
    /does not match certificate/i,
    'Name it in endpoints as its certificate does, or give it a certificate for this name.',
  ],
  [
    /certificate has expired|certificate is not yet valid/i,
    'Renew its certificate, or correct the clock of this machine.',
  ],
  [
    /SSL alert number (4[2-9]|116)\b/,
    'It wants a client certificate that it trusts: give one that an authority of its --trusted-ca-file signed as tls.cert, with tls.key.',
  ],
];
const PLAIN_AT_TLS = 'It may want TLS: then begin its endpoint with https://, and set tls.';
const TLS_AT_PLAIN = 'It may have no TLS: then begin its endpoint with http://, and leave tls out.';
export const CHECK_MEMBERS = 'Check that most of its members are up and can be written.';

/** No connection to a member came about. */
export class UnreachableError extends Error {
  readonly code = status.UNAVAILABLE;
  readonly advice: string;

  /** @param details what gRPC said about it. @param secure whether TLS was tried. */
  constructor(target: string, details: string, secure: boolean) {
    const said = reasonIn(details);
    super(`${target} cannot be reached: ${said}`);
    this.advice = adviceFor(said, secure);
  }
}

/** The error of the connection itself, in one line. */
function reasonIn(details: string): string {
  const [, reason = details] = /Last error: (.*?)\. Resolution note:/s.exec(details) ?? [];
  return reason
    .replace(/^Error(?: \[\w+\])?: /, '')
    .replace(/\(\d{4}-[\dT:.-]+Z\)$/, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function adviceFor(said: string, secure: boolean): string {
  const known = ADVICE.find(([pattern]) => pattern.test(said));
  if (known !== undefined) return known[1];
  // A handshake with a server that speaks something else ends without a word from either.
  if (secure) {
    const ended = /before secure TLS connection|wrong version number|packet length|ECONNRESET/i.test(said);
    return ended ? TLS_AT_PLAIN : CHECK_MEMBERS;
  }
  return /^Failed to connect$|ECONNRESET/.test(said) ? PLAIN_AT_TLS : CHECK_MEMBERS;
}
