import { db } from './common-options.ts';
import type { CommandSpec } from './option-spec.ts';

/** Commands about the service. */
export const SERVICE_COMMANDS = {
  serve: {
    meaning: 'serve the locks of a store to clients of any language',
    details:
      'WebSocket for connect() of the package, HTTP with JSON for everybody else, on one port; see docs/service.md. Any number of servers may share a store. SIGTERM stops it ' +
      'without losing a grant.\n\n' +
      'What it does is logged as JSON, one line each, to standard error. The file of --config is a JSON object of db, host, port, tlsCert, tlsKey, clientCa, auth (a list), insecure, sequencerKey, trace and ' +
      'limits; options and their variables go before it.',
    positionals: [],
    exits: ['unavailable'],
    options: {
      host: {
        type: 'text',
        value: 'ADDRESS',
        env: 'PAWL_HOST',
        meaning: 'the address to listen on; on any other than loopback --auth or --client-ca is needed',
        otherwise: '127.0.0.1',
      },
      port: {
        type: 'count',
        value: 'N',
        env: 'PAWL_PORT',
        meaning: 'the port, 0 for any',
        otherwise: '7295',
      },
      config: {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_CONFIG',
        meaning: 'settings as JSON',
        otherwise: 'none',
      },
      auth: {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_AUTH',
        meaning: 'the bearer tokens that are accepted, a JSON list; see: pawl help token',
        otherwise: 'none: everybody may do everything',
      },
      insecure: {
        type: 'flag',
        meaning: 'serve everybody who can reach the address, without authentication',
      },
      'tls-cert': {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_TLS_CERT',
        meaning: 'the certificate, PEM',
        otherwise: 'no TLS',
      },
      'tls-key': {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_TLS_KEY',
        meaning: 'its key, PEM',
        otherwise: 'no TLS',
      },
      'client-ca': {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_CLIENT_CA',
        meaning: 'who signs the certificates of clients, PEM; a client without one is turned away',
        otherwise: 'none is asked for',
      },
      'sequencer-key': {
        type: 'text',
        value: 'FILE',
        env: 'PAWL_SEQUENCER_KEY',
        meaning: 'signs every grant: an Ed25519 private key, PEM, or a secret of 32 bytes or more',
        otherwise: 'grants are not signed',
      },
      trace: {
        type: 'flag',
        env: 'PAWL_TRACE',
        meaning:
          'make spans of requests with the tracer that is registered with @opentelemetry/api, which has to be installed; see docs/service.md',
        otherwise: 'no spans',
      },
      log: { type: 'text', value: 'LEVEL', default: 'info', meaning: 'debug, info, warn, error or none' },
      hint: { type: 'flag', meaning: 'print what to try' },
      db,
    },
  },
  token: {
    meaning: 'make a bearer token for a client of pawl serve',
    details:
      'Prints the token, which the client needs, to standard output, and what the server has to know of it, which is only its hash, to standard error.',
    positionals: ['NAME'],
    examples: ['pawl token ci --rights acquire,read --prefix deploy: --expires-in 720h'],
    options: {
      rights: {
        type: 'text',
        value: 'LIST',
        default: 'acquire,read',
        meaning: 'acquire, read, break or admin, with commas',
      },
      prefix: {
        type: 'text',
        value: 'PREFIX',
        meaning: 'only for locks whose name starts so',
        otherwise: 'all locks',
      },
      'expires-in': {
        type: 'duration',
        value: 'TIME',
        meaning: 'how long it is accepted',
        otherwise: 'for ever',
      },
    },
  },
} as const satisfies Record<string, CommandSpec>;
