export interface Claim {
  readonly about: string;
  readonly claim: string;
  readonly holds: boolean;
  readonly measured: string;
}

export const say = (about: string, claim: string, holds: boolean, measured: string): Claim => ({
  about,
  claim,
  holds,
  measured,
});

/** The rule of a fence, in one comparison. */
export function accepts(highest: number, token: number): boolean {
  return token >= highest;
}
