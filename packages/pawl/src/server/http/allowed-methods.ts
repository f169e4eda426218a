import { openapi } from './openapi.ts';

/**
 * By which methods there is something at a path, as the OpenAPI document has it.
 *
 * @param path its parts, decoded: the name of a lock may have slashes in it.
 * @returns the methods, in capitals; none where nothing is there.
 */
export function allowedMethods(path: readonly string[]): readonly string[] {
  for (const [pattern, methods] of Object.entries(openapi.paths)) {
    const parts = pattern.split('/').slice(1);
    const fits =
      parts.length === path.length && parts.every((part, i) => part[0] === '{' || part === path[i]);
    if (fits) return Object.keys(methods).map((method) => method.toUpperCase());
  }
  return [];
}
