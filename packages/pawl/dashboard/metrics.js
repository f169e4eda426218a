/** What `/metrics` says, and what follows from two looks at it. */

/** So long a time rates and waits are of, in ms: short enough to be now, long enough not to flicker. */
const WINDOW_MS = 10_000;

/**
 * @typedef {ReadonlyMap<string, number>} Metrics by name, with the labels as they are written
 * @typedef {object} Figures
 * @property {number | undefined} sessions
 * @property {number | undefined} waiters
 * @property {number | undefined} grantsPerSecond `undefined` until there are two looks
 * @property {number | undefined} refusedPerSecond
 * @property {number | undefined} waitP50 in seconds; `undefined` where nothing was granted; infinite beyond the last bucket
 * @property {number | undefined} waitP99
 * @property {number} longestBucket the last bound of the histogram of waits, in seconds
 */

/**
 * Reads the text format of Prometheus. Lines that are no sample are passed over.
 *
 * @param {string} text
 * @returns {Metrics}
 */
export function parseMetrics(text) {
  const values = new Map();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?)\s+(\S+)/.exec(line);
    const value = match?.[2] === '+Inf' ? Number.POSITIVE_INFINITY : Number(match?.[2]);
    if (match?.[1] !== undefined && !Number.isNaN(value)) values.set(match[1], value);
  }
  return values;
}

/**
 * The sum of a metric over all its labels.
 *
 * @param {Metrics} metrics
 * @param {string} name
 * @returns {number}
 */
export function total(metrics, name) {
  let sum = 0;
  for (const [key, value] of metrics) if (key === name || key.startsWith(`${name}{`)) sum += value;
  return sum;
}

/**
 * The buckets of a histogram, rising.
 *
 * @param {Metrics} metrics
 * @param {string} name
 * @returns {{ bound: number, count: number }[]} `count` of all up to `bound`
 */
export function buckets(metrics, name) {
  const found = [];
  for (const [key, count] of metrics) {
    const label = key.startsWith(`${name}_bucket{`) ? /[{,]le="([^"]+)"/.exec(key)?.[1] : undefined;
    if (label === undefined) continue;
    found.push({ bound: label === '+Inf' ? Number.POSITIVE_INFINITY : Number(label), count });
  }
  return found.sort((a, b) => a.bound - b.bound);
}

/**
 * Below what the share `q` of all lies. Within a bucket it is taken for evenly spread, as Prometheus does.
 *
 * @param {readonly { bound: number, count: number }[]} histogram
 * @param {number} q from 0 to 1
 * @returns {number | undefined} `undefined` where nothing was counted; infinite where it lies beyond the last bound
 */
export function quantile(histogram, q) {
  const all = histogram.at(-1)?.count ?? 0;
  if (all <= 0) return undefined;
  const rank = q * all;
  let [below, before] = [0, 0];
  for (const { bound, count } of histogram) {
    if (count >= rank && count > before) {
      if (bound === Number.POSITIVE_INFINITY) return bound;
      return below + (bound - below) * Math.max(0, (rank - before) / (count - before));
    }
    [below, before] = [bound, count];
  }
  return undefined;
}

/** Looks at the metrics again and again, and tells what happens at the moment. */
export class Activity {
  /** @type {{ metrics: Metrics, atMs: number }[]} */
  #looks = [];

  /**
   * @param {Metrics} metrics
   * @param {number} nowMs of a clock that is not set back
   * @returns {Figures}
   */
  note(metrics, nowMs) {
    const last = this.#looks.at(-1);
    // Counters that fall are another server's, or this one's after a restart.
    if (last !== undefined && RISING.some((name) => total(metrics, name) < total(last.metrics, name)))
      this.#looks = [];
    this.#looks.push({ metrics, atMs: nowMs });
    while ((this.#looks[1]?.atMs ?? nowMs) <= nowMs - WINDOW_MS) this.#looks.shift();
    const first = this.#looks[0];
    const since = first === undefined || first.atMs >= nowMs ? undefined : first;
    /** @param {string} name */
    const rate = (name) =>
      since && (total(metrics, name) - total(since.metrics, name)) / ((nowMs - since.atMs) / 1000);
    const before = since && buckets(since.metrics, WAIT);
    const waits = buckets(metrics, WAIT).map(({ bound, count }, i) => ({
      bound,
      count: before === undefined ? 0 : count - (before[i]?.count ?? 0),
    }));
    return {
      sessions: metrics.get('pawl_sessions'),
      waiters: metrics.get('pawl_queue_depth'),
      grantsPerSecond: rate(GRANTS),
      refusedPerSecond: rate(REFUSED),
      waitP50: quantile(waits, 0.5),
      waitP99: quantile(waits, 0.99),
      longestBucket: waits.at(-2)?.bound ?? 0,
    };
  }
}

const GRANTS = 'pawl_grants_total';
const REFUSED = 'pawl_refused_total';
const WAIT = 'pawl_acquire_seconds';
const RISING = [GRANTS, REFUSED, `${WAIT}_count`];
