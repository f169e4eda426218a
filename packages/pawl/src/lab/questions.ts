import { assemblyFigures } from './assembly.ts';
import { noExpiryFigures } from './blocks/01-no-expiry.ts';
import { leaseFigures } from './blocks/02-lease.ts';
import { fencingFigures } from './blocks/03-fencing-tokens.ts';
import { whereToCheckFigures } from './blocks/04-where-to-check.ts';
import { sizingFigures } from './blocks/05-sizing-the-lease.ts';
import { percent, type Question } from './lesson.ts';

/** Six questions to answer before reading on: the distance between answer and measurement is what is learnt. */
export const questions: readonly Question[] = [
  {
    block: 1,
    text: 'Ten clients take a lock without expiry, one after the other; client 3 dies while it holds it. How many of the ten get through?',
    answer: () => `${noExpiryFigures().rows[1]?.completed}`,
  },
  {
    block: 2,
    text: 'A lease of 10 s. A acquires it, is paused for 10.1 s, and writes 200 when it wakes; B has written 100. Which value is left?',
    answer: () => `${leaseFigures().rows[2]?.final}: A's, the older one`,
  },
  {
    block: 3,
    text: 'The same, and the resource checks a fencing token. Which value is left now?',
    answer: () => `${fencingFigures().rows[1]?.final}: B's`,
  },
  {
    block: 4,
    text: 'Instead of the resource, A checks its own token right before it writes. Does that help, and when does it not?',
    answer: () => {
      const [before, after] = whereToCheckFigures().rows;
      return `${before?.verdict} if the pause comes before the check, ${after?.verdict} if it comes between check and write`;
    },
  },
  {
    block: 'assembly',
    text: 'What share of the lost updates does that check let through if 1 ms lies between check and write? And if 1 s does?',
    answer: () => {
      const { gaps } = assemblyFigures();
      return `${percent(gaps[0]?.share ?? 0, 1)} and ${percent(gaps[3]?.share ?? 0, 1)}`;
    },
  },
  {
    block: 5,
    text: 'Work takes 0.5 s on average, and 2% of the holders stall for some 8 s. With a lease of 1 s, what share outlives its lease?',
    answer: () => percent(sizingFigures().rows[0]?.zombies ?? 0),
  },
];
