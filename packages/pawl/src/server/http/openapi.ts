import { schemas } from './openapi-schemas.ts';

const token = { $ref: '#/components/schemas/Token' };
const problem = {
  description: 'Refused; `code` says why.',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};
const text = { description: 'Text.', content: { 'text/plain': { schema: { type: 'string' } } } };
const name = {
  name: 'name',
  in: 'path',
  required: true,
  description: 'The name of a lock, percent-encoded: 1 to 512 bytes of UTF-8.',
  schema: { type: 'string' },
};
const session = {
  name: 'session',
  in: 'path',
  required: true,
  schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
};

/** What the HTTP interface takes and answers, for tools that read OpenAPI 3.1. */
export const openapi = {
  openapi: '3.1.0',
  info: {
    title: 'Pawl',
    version: '1',
    description:
      'Distributed locks whose every grant carries a fencing token. Open a session, keep it alive at a third of its TTL, and acquire in it. Send the token with every write to the resource, which refuses one that is lower than the highest it has seen.',
  },
  security: [{ bearer: [] }, {}],
  paths: {
    '/v1/sessions': {
      post: {
        summary: 'Open a session',
        requestBody: json({
          type: 'object',
          properties: { ttlMs: { $ref: '#/components/schemas/DurationMs', default: 10_000 } },
        }),
        responses: answers({
          type: 'object',
          required: ['session', 'ttlMs'],
          properties: { session: { type: 'string' }, ttlMs: { type: 'integer' } },
        }),
      },
    },
    '/v1/sessions/{session}/keepalive': {
      post: {
        summary: 'Give a session its whole TTL again; 410 once it has ended, which is final',
        parameters: [session],
        responses: answers(flag('alive')),
      },
    },
    '/v1/sessions/{session}': {
      delete: {
        summary: 'Give back all that the session has, and end it',
        parameters: [session],
        responses: answers(flag('closed')),
      },
    },
    '/v1/locks': {
      get: {
        summary: 'List the locks in use',
        parameters: [
          query('prefix', { type: 'string' }, 'What the names begin with.'),
          query('limit', { type: 'integer', minimum: 1 }, 'At most so many; never more than 100.'),
          query('after', { type: 'string' }, '`next` of the page before.'),
        ],
        responses: answers({
          type: 'object',
          required: ['locks', 'next'],
          properties: {
            locks: { type: 'array', items: { $ref: '#/components/schemas/LockState' } },
            next: { type: ['string', 'null'], description: '`after` of the next page; null at the end.' },
          },
        }),
      },
    },
    '/v1/locks/{name}': {
      get: {
        summary: 'A lock as it is now',
        parameters: [name],
        responses: answers({ $ref: '#/components/schemas/LockState' }),
      },
    },
    '/v1/locks/{name}/watch': {
      get: {
        summary: 'The state of a lock at once and whenever it changes',
        parameters: [name],
        responses: {
          200: {
            description: 'Server-sent events; the data of each is a LockState.',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
          default: problem,
        },
      },
    },
    '/v1/locks/{name}/acquire': {
      post: {
        summary: 'Acquire a lock, waiting up to waitMs',
        description:
          'Repeated with the same session and request it is the same acquire: the same grant, or the same place in the queue. 409 with PAWL_HELD or PAWL_ACQUIRE_TIMEOUT where it is held by another.',
        parameters: [name],
        requestBody: json({ $ref: '#/components/schemas/Acquire' }),
        responses: answers({ $ref: '#/components/schemas/Grant' }),
      },
    },
    '/v1/locks/{name}/release': {
      post: {
        summary: 'Give a lock back',
        parameters: [name],
        requestBody: json({
          type: 'object',
          required: ['session', 'request', 'token'],
          properties: { session: { type: 'string' }, request: { type: 'string' }, token },
        }),
        responses: answers(flag('released')),
      },
    },
    '/v1/locks/{name}/break': {
      post: {
        summary: 'Take a lock away from its holder; only a fence stops a holder that is still at work',
        parameters: [name],
        requestBody: json({
          type: 'object',
          required: ['token', 'reason'],
          properties: {
            token,
            slot: { type: 'integer', description: 'Where several hold under one token.' },
            reason: { type: 'string' },
            by: { type: 'string', description: 'The name of the bearer token unless set.' },
          },
        }),
        responses: answers(flag('broken')),
      },
    },
    '/v1/guarantees': {
      get: {
        summary: 'The engine below, and what it guarantees',
        responses: answers({ $ref: '#/components/schemas/Guarantees' }),
      },
    },
    '/': {
      get: {
        summary: 'The dashboard, for browsers',
        security: [],
        responses: {
          200: { description: 'A page.', content: { 'text/html': { schema: { type: 'string' } } } },
        },
      },
    },
    '/openapi.json': {
      get: { summary: 'This document', security: [], responses: answers({ type: 'object' }) },
    },
    '/metrics': { get: { summary: 'Metrics for Prometheus', responses: { 200: text, default: problem } } },
    '/livez': { get: { summary: 'Whether the process lives', security: [], responses: { 200: text } } },
    '/readyz': {
      get: { summary: 'Whether the engine answers', security: [], responses: { 200: text, 503: text } },
    },
    '/healthz': {
      get: { summary: 'The same as /readyz', security: [], responses: { 200: text, 503: text } },
    },
  },
  components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } }, schemas },
};

function json(schema: object): object {
  return { required: true, content: { 'application/json': { schema } } };
}

function answers(schema: object): object {
  return { 200: { description: 'Done.', content: { 'application/json': { schema } } }, default: problem };
}

function flag(field: string): object {
  return { type: 'object', required: [field], properties: { [field]: { const: true } } };
}

function query(field: string, schema: object, description: string): object {
  return { name: field, in: 'query', description, schema };
}
