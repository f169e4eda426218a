/** Numbers, durations and names as the page shows them. */

/** What there is no value for. */
export const NOTHING = '–';

/**
 * Text of others as it may be shown: no character of it moves, turns or hides the text around it.
 *
 * @param {string} text
 * @returns {string}
 */
export function printable(text) {
  return text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (each) => {
    return `\\u{${each.codePointAt(0)?.toString(16)}}`;
  });
}

/**
 * @param {number | undefined} count
 * @returns {string}
 */
export function countText(count) {
  return count === undefined ? NOTHING : count.toLocaleString('en');
}

/**
 * @param {number | undefined} perSecond
 * @returns {string}
 */
export function rateText(perSecond) {
  if (perSecond === undefined) return NOTHING;
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : countText(Math.round(perSecond));
}

/**
 * A measured time, from parts of a millisecond upward.
 *
 * @param {number | undefined} seconds
 * @returns {string}
 */
export function secondsText(seconds) {
  if (seconds === undefined) return NOTHING;
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds)} s`;
}

/**
 * An age, in its two largest units.
 *
 * @param {number} ms
 * @returns {string}
 */
export function ageText(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 24) return `${hours} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
