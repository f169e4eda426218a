import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../', import.meta.url);
const page = readFileSync(new URL('docs/failures.md', root), 'utf8');
/** How many failures of others were looked at. */
const FAILURES = 82;
/** What Pawl has no part in, so that there is nothing to test. */
const UNTESTED = [60];

/** An entry of the page: its number, and its text up to the next one. */
const entries = page
  .split(/^## /m)[0]
  ?.split(/^(?=\*\*\d+\. )/m)
  .slice(1)
  .map((text) => ({ number: Number(/\d+/.exec(text)?.[0]), text }));

/** Every test that a text names, as its file and title. */
function testsIn(text: string): { file: string; title: string }[] {
  return [...text.matchAll(/`([^`]+\.ts)`: "([^"]+)"/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }));
}

describe('docs/failures.md', () => {
  it('has an entry for each failure, in order', () => {
    expect(entries?.map(({ number }) => number)).toEqual(Array.from({ length: FAILURES }, (_, i) => i + 1));
  });

  it('names a test in each entry, but where it says why there is none', () => {
    const without = entries?.filter(({ text }) => testsIn(text).length === 0).map(({ number }) => number);
    expect(without).toEqual(UNTESTED);
    const last = page.slice(page.indexOf('## Not (yet) handled'));
    for (const number of UNTESTED) expect(last).toContain(`(${number})`);
  });

  it('names no test that is not there', () => {
    const named = testsIn(page);
    expect(named).toHaveLength(page.match(/^- `packages\/|^- `test\//gm)?.length ?? 0);
    const missing = named.filter(({ file, title }) => {
      const url = new URL(file, root);
      if (!existsSync(url)) return true;
      // A title stands in quotes of its own, after `it(` or what `it.each` and its like were called with.
      return !readFileSync(url, 'utf8').includes(`'${title}'`);
    });
    expect(missing).toEqual([]);
  });

  it('finds what is missing', () => {
    expect(testsIn('- `a/b.test.ts`: "S1: c"')).toEqual([{ file: 'a/b.test.ts', title: 'S1: c' }]);
  });
});
