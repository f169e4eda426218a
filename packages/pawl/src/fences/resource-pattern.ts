import { checkResource } from './bearer.ts';
import { FenceUsageError } from './errors.ts';

/** A part of a pattern: fixed text, or the value of a column. */
export type PatternPart = { readonly text: string } | { readonly column: string };

/** Reads `invoice:{id}` as the text `invoice:` and the column `id`. @throws FenceUsageError */
export function parseResourcePattern(pattern: unknown): readonly PatternPart[] {
  checkResource(pattern);
  const parts: PatternPart[] = [];
  for (const [, column, text = ''] of pattern.matchAll(/\{([^{}]+)\}|([^{}]+|[{}])/gu)) {
    if (text === '{' || text === '}') {
      throw new FenceUsageError(
        pattern,
        `"${pattern}" has a brace that is not closed; a column stands in braces, as in "invoice:{id}".`,
      );
    }
    parts.push(column === undefined ? { text } : { column });
  }
  return parts;
}

/** The columns that a pattern names. */
export function columnsOf(parts: readonly PatternPart[]): string[] {
  return parts.flatMap((part) => ('column' in part ? [part.column] : []));
}
