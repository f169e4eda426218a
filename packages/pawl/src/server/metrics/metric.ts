/** The kinds of metrics, as Prometheus reads them. Labels are few and fixed: never a lock's name, which clients choose. */

/** Counts what happened, by the values of one label or without. */
export class Counter {
  readonly #name: string;
  readonly #help: string;
  readonly #label: string | undefined;
  readonly #values = new Map<string, number>();

  /** @param known values of the label that are shown before they are first counted. */
  constructor(name: string, help: string, label?: string, known: readonly string[] = []) {
    this.#name = name;
    this.#help = help;
    this.#label = label;
    for (const value of label === undefined ? [''] : known) this.#values.set(value, 0);
  }

  add(count = 1, label = ''): void {
    this.#values.set(label, (this.#values.get(label) ?? 0) + count);
  }

  /** The sum over all values of the label. */
  get total(): number {
    return [...this.#values.values()].reduce((sum, value) => sum + value, 0);
  }

  text(): string {
    const lines = [...this.#values].map(([value, count]) =>
      this.#label === undefined
        ? `${this.#name} ${count}`
        : `${this.#name}{${this.#label}="${value}"} ${count}`,
    );
    return [...head(this.#name, this.#help, 'counter'), ...lines].join('\n');
  }
}

/** What is so at the moment. */
export class Gauge {
  readonly #name: string;
  readonly #help: string;
  readonly #read: () => number;

  constructor(name: string, help: string, read: () => number) {
    this.#name = name;
    this.#help = help;
    this.#read = read;
  }

  text(): string {
    return [...head(this.#name, this.#help, 'gauge'), `${this.#name} ${this.#read()}`].join('\n');
  }
}

/** How large what happened was. */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper bounds of the buckets, rising. */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let i = 0;
    while (i < this.#bounds.length && value > (this.#bounds[i] ?? 0)) i += 1;
    this.#counts[i] = (this.#counts[i] ?? 0) + 1;
    this.#sum += value;
  }

  text(): string {
    let count = 0;
    const lines = this.#counts.map((inBucket, i) => {
      count += inBucket;
      return `${this.#name}_bucket{le="${this.#bounds[i] ?? '+Inf'}"} ${count}`;
    });
    lines.push(`${this.#name}_sum ${this.#sum}`, `${this.#name}_count ${count}`);
    return [...head(this.#name, this.#help, 'histogram'), ...lines].join('\n');
  }
}

function head(name: string, help: string, type: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}
