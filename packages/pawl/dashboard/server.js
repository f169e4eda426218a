/** The server that this page came from. */

import { Trouble, troubleIn } from './trouble.js';

/** So long an answer may take, in ms. */
const ANSWER_LIMIT_MS = 10_000;
const KEPT_AS = 'pawl-token';

/**
 * Asks the server with the token that the user entered. What it refused to this token is not asked again: a page that is left
 * open would fill the server's log.
 */
export class Server {
  #token = sessionStorage.getItem(KEPT_AS) ?? '';
  /** @type {Trouble | undefined} */
  #unauthenticated;
  /** @type {Map<string, Trouble>} */
  #forbidden = new Map();

  get hasToken() {
    return this.#token !== '';
  }

  /** @param {string} token `''` for none */
  use(token) {
    this.#token = token;
    if (token === '') sessionStorage.removeItem(KEPT_AS);
    else sessionStorage.setItem(KEPT_AS, token);
    this.#unauthenticated = undefined;
    this.#forbidden.clear();
  }

  /**
   * @param {string} path relative to the page
   * @returns {Promise<any>}
   * @throws {Trouble}
   */
  async json(path) {
    return JSON.parse(await this.text(path));
  }

  /**
   * @param {string} path relative to the page
   * @returns {Promise<string>}
   * @throws {Trouble}
   */
  async text(path) {
    const refused = this.#unauthenticated ?? this.#forbidden.get(path);
    if (refused !== undefined) throw refused;
    const token = this.#token;
    /** @type {Record<string, string>} */
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
    const { status, body } = await ask(path, headers);
    if (status === 200) return body;
    const trouble = troubleIn(status, body);
    if (token === this.#token) {
      if (status === 401) this.#unauthenticated = trouble;
      if (status === 403) this.#forbidden.set(path, trouble);
    }
    throw trouble;
  }

  /**
   * Whether the server can serve; it tells everybody.
   *
   * @returns {Promise<string | undefined>} what is wrong, or `undefined` where nothing is
   * @throws {Trouble} where it does not answer
   */
  async problem() {
    const { status, body } = await ask('readyz', {});
    return status === 200 ? undefined : body.trim();
  }
}

/**
 * @param {string} path
 * @param {Record<string, string>} headers
 */
async function ask(path, headers) {
  try {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const response = await fetch(path, { headers, signal, cache: 'no-store', redirect: 'error' });
    return { status: response.status, body: await response.text() };
  } catch (error) {
    throw new Trouble(0, String(error));
  }
}
