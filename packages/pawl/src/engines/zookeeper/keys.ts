import { StoreCorruptError } from '../../errors.ts';

/** How keys become paths of nodes, so that each level has few children and the order of keys can be walked. */

/** What a node below the top of all keys is, by the first character of its name. */
const MARK = { entry: '=', folder: '+', part: '*' } as const;

/**
 * A segment that begins with so many digits is a number in a long row, such as a waiter's ticket: it is cut in two, so that
 * whoever looks for the first of 10,000 does not get 10,000 names.
 */
const NUMBER = /^\d{15}/;
const FRONT = 14;

const PLAIN = /^[A-Za-z0-9_.:%-]*$/;
const encoder = new TextEncoder();

/** A child of a folder. */
export interface Child {
  readonly kind: 'entry' | 'folder' | 'part';
  /** What all its keys begin with; of an entry, its key. */
  readonly key: string;
  /** Where it stands among its siblings, by {@link byteOrder}. */
  readonly rank: string;
  readonly name: string;
}

/** The path of a key's node below `top`. */
export function pathOfKey(top: string, key: string): string {
  const segments = key.split('/');
  let path = top;
  for (const [i, segment] of segments.entries()) {
    path += namesOf(segment, i === segments.length - 1 ? MARK.entry : MARK.folder);
  }
  return path;
}

/** All nodes between `top` and the node at `path`, the upper first. */
export function foldersAbove(top: string, path: string): string[] {
  const folders: string[] = [];
  for (let at = path.indexOf('/', top.length + 1); at >= 0; at = path.indexOf('/', at + 1))
    folders.push(path.slice(0, at));
  return folders;
}

/** The lowest folder that has all keys with this prefix, and what all keys in it begin with. */
export function folderOfPrefix(top: string, prefix: string): { path: string; key: string } {
  const segments = prefix.split('/');
  const last = segments.pop() ?? '';
  let path = top;
  for (const segment of segments) path += namesOf(segment, MARK.folder);
  const key = prefix.slice(0, prefix.length - last.length);
  if (!NUMBER.test(last)) return { path, key };
  const front = last.slice(0, FRONT);
  return { path: `${path}/${MARK.part}${front}`, key: key + front };
}

/**
 * The children of a folder in the order of the keys they hold.
 *
 * @param key what all keys in the folder begin with.
 * @throws StoreCorruptError where one was not made by {@link pathOfKey}.
 */
export function inOrder(key: string, names: readonly string[]): Child[] {
  return names.map((name) => childOf(key, name)).sort((a, b) => byteOrder(a.rank, b.rank));
}

/** The order of the bytes of two texts' UTF-8, without making them. */
export function byteOrder(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [unitOfA, unitOfB] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (unitOfA !== unitOfB) return inUtf8(unitOfA) - inUtf8(unitOfB);
  }
  return a.length - b.length;
}

/** Half a surrogate pair stands for a character above all that one unit holds. */
function inUtf8(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

function namesOf(segment: string, mark: string): string {
  if (!NUMBER.test(segment)) return `/${mark}${encode(segment)}`;
  return `/${MARK.part}${segment.slice(0, FRONT)}/${mark}${encode(segment.slice(FRONT))}`;
}

/** A part holds texts that go on with a digit, so it ranks like the first of them: behind the entry and the folder of its name. */
function childOf(above: string, name: string): Child {
  const text = decode(name.slice(1));
  const key = above + text;
  if (name.startsWith(MARK.entry)) return { kind: 'entry', key, rank: text, name };
  if (name.startsWith(MARK.folder)) return { kind: 'folder', key: `${key}/`, rank: `${text}/`, name };
  if (name.startsWith(MARK.part)) return { kind: 'part', key, rank: `${text}0`, name };
  throw notOurs(name);
}

function encode(segment: string): string {
  if (PLAIN.test(segment)) return segment;
  let encoded = '';
  for (const byte of encoder.encode(segment)) {
    const char = String.fromCharCode(byte);
    encoded += PLAIN.test(char) ? char : `!${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

function decode(encoded: string): string {
  if (PLAIN.test(encoded)) return encoded;
  const bytes: number[] = [];
  for (let i = 0; i < encoded.length; i += 1) {
    if (encoded[i] !== '!') {
      bytes.push(encoded.charCodeAt(i));
      continue;
    }
    bytes.push(Number.parseInt(encoded.slice(i + 1, i + 3), 16));
    i += 2;
  }
  const text = Buffer.from(bytes).toString();
  if (encode(text) !== encoded) throw notOurs(encoded);
  return text;
}

function notOurs(name: string): StoreCorruptError {
  return new StoreCorruptError('A folder of keys in ZooKeeper', `"${name}" is no name as Pawl writes it`);
}
