/** A frame taken apart: its messages, or `undefined` where it is no list of objects or longer than `most`. */
export function readFrame(frame: string, most: number): readonly Record<string, unknown>[] | undefined {
  let messages: unknown;
  try {
    messages = JSON.parse(frame);
  } catch {
    return undefined;
  }
  if (!Array.isArray(messages) || messages.length > most) return undefined;
  const objects = messages.every((each) => typeof each === 'object' && each !== null && !Array.isArray(each));
  return objects ? messages : undefined;
}
