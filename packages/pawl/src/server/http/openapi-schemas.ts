const mode = { enum: ['exclusive', 'shared'] };
const owner = { type: 'object', additionalProperties: { type: 'string' } };
const token = { $ref: '#/components/schemas/Token' };
const duration = { $ref: '#/components/schemas/DurationMs' };

/** The types of what the HTTP interface takes and answers. */
export const schemas = {
  Token: {
    type: 'string',
    pattern: '^[1-9][0-9]{0,18}$',
    description: 'A fencing token, below 2^63: as text, since JSON numbers are too short for it.',
  },
  DurationMs: { type: 'integer', minimum: 0, maximum: 2_592_000_000 },
  Acquire: {
    type: 'object',
    required: ['session', 'request'],
    properties: {
      session: { type: 'string' },
      request: {
        type: 'string',
        description: 'Made up by the caller, a new one for each acquire: 1 to 512 bytes.',
      },
      waitMs: { ...duration, description: '0, which is the default, for one attempt.' },
      mode: { ...mode, default: 'exclusive' },
      permits: {
        type: ['integer', 'null'],
        minimum: 1,
        maximum: 1024,
        description: 'The size of a semaphore.',
      },
      owner: { ...owner, description: 'Shown to others; at most 1024 bytes as JSON.' },
      lockDelayMs: { ...duration, description: 'How long the lock stays closed if this holder is lost.' },
      barging: { type: 'boolean', default: false },
    },
  },
  Grant: {
    type: 'object',
    required: ['name', 'mode', 'slot', 'token'],
    properties: {
      name: { type: 'string' },
      mode,
      slot: { type: 'integer' },
      token,
      sequencer: { type: 'string', description: 'The same, signed, where the server signs.' },
    },
  },
  LockState: {
    type: 'object',
    required: ['name', 'permits', 'holders', 'waiting', 'waiters', 'lastBreak'],
    properties: {
      name: { type: 'string' },
      permits: { type: ['integer', 'null'] },
      holders: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            token,
            slot: { type: 'integer' },
            mode,
            owner,
            lockDelay: {
              type: 'boolean',
              description: 'Nobody works under it; the lock stays closed for a while.',
            },
          },
        },
      },
      waiting: { type: 'integer' },
      waiters: {
        type: 'array',
        description: 'The first in line.',
        items: { type: 'object', properties: { mode, owner } },
      },
      lastBreak: {
        type: ['object', 'null'],
        properties: {
          token,
          slot: { type: 'integer' },
          by: { type: 'string' },
          reason: { type: 'string' },
          atMs: { type: 'integer', description: 'Ms since the Unix epoch.' },
          owner,
        },
      },
    },
  },
  Guarantees: {
    type: 'object',
    required: [
      'engine',
      'survives',
      'expiryDecidedBy',
      'tokensRestOn',
      'wakeUp',
      'durable',
      'mutualExclusion',
      'needsFencing',
      'minTtlMs',
      'sweepMs',
    ],
    properties: {
      engine: { type: 'string' },
      survives: { type: 'string' },
      expiryDecidedBy: { type: 'string' },
      tokensRestOn: { type: 'string' },
      wakeUp: { type: 'string' },
      durable: {
        type: 'boolean',
        description: 'Whether a commit is on stable storage before it is answered.',
      },
      mutualExclusion: { enum: ['yes', 'clock-dependent'] },
      needsFencing: { const: true },
      minTtlMs: { ...duration, description: 'The shortest TTL of a session.' },
      sweepMs: { ...duration, description: 'How long after its end a session is noticed at the latest.' },
    },
  },
  Problem: {
    type: 'object',
    required: ['title', 'status', 'detail', 'code', 'outcome', 'retryable'],
    properties: {
      title: { type: 'string' },
      status: { type: 'integer' },
      detail: { type: 'string' },
      code: { type: 'string', description: 'Stable; starts with PAWL_.' },
      outcome: {
        enum: ['definite', 'indefinite'],
        description: 'Whether what was asked surely did not happen, or may have.',
      },
      retryable: { type: 'boolean' },
    },
  },
};
