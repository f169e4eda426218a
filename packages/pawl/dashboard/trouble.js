/** What went wrong between the page and the server, and what to do about it. */

/** The server refused, or did not answer: then `status` is 0. */
export class Trouble extends Error {
  /**
   * @param {number} status
   * @param {string} detail what the server said
   */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/**
 * An answer that is no success.
 *
 * @param {number} status
 * @param {string} body
 * @returns {Trouble}
 */
export function troubleIn(status, body) {
  try {
    const { detail } = JSON.parse(body);
    if (typeof detail === 'string') return new Trouble(status, detail);
  } catch {
    // Something between the page and the server answered, not the server.
  }
  return new Trouble(status, `The answer was ${status}.`);
}

/**
 * @param {Trouble} trouble
 * @param {boolean} hasToken whether a token was sent
 * @returns {string}
 */
export function troubleText({ status, message }, hasToken) {
  switch (status) {
    case 0:
      return 'The server cannot be reached. What is shown is old; the page keeps trying.';
    case 401:
      return hasToken
        ? `The server does not accept this token: ${message} Enter another one.`
        : 'This server wants to know who asks. Enter a token that has the right to read.';
    case 403:
      return `${message} If it may read the locks below a prefix, filter by that; or use another token.`;
    case 503:
      return `The server answers, but cannot serve: ${message} What is shown is old; the page keeps trying.`;
    default:
      return message;
  }
}
