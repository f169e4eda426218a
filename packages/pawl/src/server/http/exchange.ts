import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { InvalidArgumentError, LimitError } from '../../errors.ts';
import { Fields } from '../../protocol/fields.ts';
import { tokenAsText } from '../../protocol/results.ts';
import type { Limits } from '../limits.ts';
import { HttpError, problemOf } from './problem.ts';

/** One request and its answer. */
export class Exchange {
  readonly method: string;
  /** The parts of the path, decoded. A part is never read as "here" or "up": a lock may be named `..`. */
  readonly path: readonly string[];
  readonly query: Fields;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #limits: Limits;

  /** @throws InvalidArgumentError where there is no host, the path is not percent-encoded UTF-8, or a query field comes twice. */
  constructor(request: IncomingMessage, response: ServerResponse, limits: Limits) {
    this.request = request;
    this.response = response;
    this.#limits = limits;
    this.method = request.method ?? '';
    if (request.headers.host === undefined && request.httpVersion !== '1.0')
      throw new InvalidArgumentError('Host', 'the name by which the server is asked', undefined);
    const [path = '', query = ''] = (request.url ?? '').split(/\?(.*)/s);
    this.path = path.split('/').slice(1).map(decode);
    const fields = new Map<string, string>();
    for (const [field, value] of new URLSearchParams(query)) {
      if (fields.has(field)) throw new InvalidArgumentError(field, 'given once', 'given twice');
      fields.set(field, value);
    }
    this.query = new Fields(Object.fromEntries(fields), 'query');
  }

  /** The body, which has to be a JSON object; its `Content-Type` says so, which no page of another site can. */
  async body(): Promise<Fields> {
    if (!/^application\/json\s*(;|$)/i.test(this.request.headers['content-type'] ?? '')) {
      const given = this.request.headers['content-type'];
      throw new HttpError(415, new InvalidArgumentError('Content-Type', 'application/json', given));
    }
    const { bodyBytes } = this.#limits;
    const tooLong = () => new HttpError(413, new LimitError('bodyBytes', bodyBytes, 'send a shorter body'));
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      for await (const chunk of this.request as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > bodyBytes) throw tooLong();
        chunks.push(chunk);
      }
    } catch (error) {
      if (error instanceof HttpError) throw error;
      // The client went away while it sent it, or sent what is no HTTP.
      throw new InvalidArgumentError('body', 'sent as a whole', undefined);
    }
    const text = Buffer.concat(chunks).toString('utf8');
    try {
      return new Fields(JSON.parse(text), 'body');
    } catch (error) {
      if (error instanceof InvalidArgumentError) throw error;
      throw new InvalidArgumentError('body', 'a JSON object', text);
    }
  }

  json(status: number, value: unknown): void {
    this.#send(status, 'application/json', JSON.stringify(value, tokenAsText));
  }

  /** @param headers besides those that every answer has. */
  text(status: number, type: string, text: string, headers: OutgoingHttpHeaders = {}): void {
    this.#send(status, type, text, headers);
  }

  problem(error: unknown): void {
    const problem = problemOf(error);
    if (problem.status === 401) this.response.setHeader('www-authenticate', 'Bearer');
    if (error instanceof HttpError && error.allow.length > 0)
      this.response.setHeader('allow', error.allow.join(', '));
    // What was not read of the request is not waited for.
    if (!this.request.complete) this.response.setHeader('connection', 'close');
    this.#send(problem.status, 'application/problem+json', JSON.stringify(problem));
  }

  #send(status: number, type: string, text: string, headers: OutgoingHttpHeaders = {}): void {
    if (this.response.headersSent || this.response.destroyed) return;
    this.response.writeHead(status, {
      ...headers,
      'content-type': type,
      'content-length': Buffer.byteLength(text),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    this.response.end(text);
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new InvalidArgumentError('path', 'percent-encoded UTF-8', part);
  }
}
