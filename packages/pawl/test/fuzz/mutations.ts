import fc from 'fast-check';

/** Something that JSON can say, often of the wrong kind for where it is put. */
export const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown[]>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e21,
    2 ** 53,
    '',
    '0',
    '-1',
    '01',
    '9223372036854775808',
  ),
  fc.constantFrom<unknown[]>(
    [],
    {},
    [[]],
    [null],
    ['x'],
    { a: 1 },
    '__proto__',
    'constructor',
    '\ud800',
    '\0',
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

export type Place = {
  readonly at: number;
  readonly way: 'replace' | 'remove' | 'add' | 'rename';
  readonly by: unknown;
};

/** One change of a value of JSON. */
export const place: fc.Arbitrary<Place> = fc.record({
  at: fc.nat(1000),
  way: fc.constantFrom('replace', 'replace', 'replace', 'remove', 'add', 'rename'),
  by: anyJson,
});

/** A value of JSON in which something, somewhere, was replaced, removed, added or renamed. */
export function mutatedJson(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(valid, fc.array(place, { minLength: 1, maxLength: 3 })).map(([value, places]) => {
    let mutated: unknown = JSON.parse(JSON.stringify(value));
    for (const each of places) mutated = mutateJson(mutated, each);
    return mutated;
  });
}

/** Changes the value, which must not be used any more. */
export function mutateJson(value: unknown, { at, way, by: drawn }: Place): unknown {
  // What is put in is mutated further, and fast-check draws its constants again.
  const by = structuredClone(drawn);
  const holder = { root: value };
  const slots: { within: Record<string, unknown>; key: string }[] = [];
  const visit = (within: Record<string, unknown>) => {
    for (const key of Object.keys(within)) {
      slots.push({ within, key });
      const inner = within[key];
      if (typeof inner === 'object' && inner !== null) visit(inner as Record<string, unknown>);
    }
  };
  visit(holder);
  const slot = slots[at % slots.length];
  if (slot === undefined) return value;
  const { within, key } = slot;
  if (way === 'add' && typeof within[key] === 'object' && within[key] !== null)
    Object.assign(within[key] as object, { [`added${at}`]: by });
  else if (way === 'replace' || within === holder) within[key] = by;
  else if (Array.isArray(within)) within.splice(Number(key), way === 'rename' ? 0 : 1);
  else {
    if (way === 'rename') within[key.toUpperCase()] = within[key];
    delete within[key];
  }
  return holder.root;
}

/** Bytes of which some were changed, taken out, put in or cut off. */
export function mutatedBytes(valid: fc.Arbitrary<Uint8Array>): fc.Arbitrary<Buffer> {
  const change = fc.record({
    at: fc.nat(10_000),
    way: fc.constantFrom('flip', 'set', 'insert', 'remove', 'cut', 'repeat'),
    byte: fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.nat(255)),
  });
  return fc.tuple(valid, fc.array(change, { minLength: 1, maxLength: 4 })).map(([bytes, changes]) => {
    let mutated = Buffer.from(bytes);
    for (const { at, way, byte } of changes) {
      const i = mutated.length === 0 ? 0 : at % mutated.length;
      const [before, after] = [mutated.subarray(0, i), mutated.subarray(i)];
      if (way === 'insert') mutated = Buffer.concat([before, Buffer.of(byte), after]);
      else if (way === 'remove') mutated = Buffer.concat([before, after.subarray(1)]);
      else if (way === 'cut') mutated = Buffer.from(before);
      else if (way === 'repeat') mutated = Buffer.concat([before, after, after]);
      else if (mutated.length > 0) mutated[i] = way === 'set' ? byte : (mutated[i] ?? 0) ^ (1 << (byte % 8));
    }
    return mutated;
  });
}

/** The text of JSON values, some of whose characters were changed as well. */
export function mutatedText(valid: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const text = mutatedJson(valid).map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 4, arbitrary: text },
    { weight: 1, arbitrary: mutatedBytes(text.map((each) => Buffer.from(each))).map(String) },
    { weight: 1, arbitrary: fc.string() },
  );
}
