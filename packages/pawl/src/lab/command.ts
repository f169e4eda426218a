import type { Readable, Writable } from 'node:stream';
import { InvalidArgumentError } from '../errors.ts';
import { assembly } from './assembly.ts';
import { blocks, withPrerequisites } from './blocks/index.ts';
import type { Block, Question } from './lesson.ts';
import { renderAssembly, renderBlock, renderClaims, renderList } from './render.ts';

/* What only some runs need is loaded only by those: the whole lab is meant to be over in half a second. */

/** What to run of the lab, as `pawl lab` takes it. */
export interface LabOptions {
  /** One block with those it builds on, 1 to 16. */
  readonly block?: number | undefined;
  /** The assembly alone. */
  readonly quiet: boolean;
  /** Derive all claims anew. */
  readonly verify: boolean;
  readonly json: boolean;
  readonly list: boolean;
  /** Ask before showing. */
  readonly predict: boolean;
  /** A directory to write the curves to, as SVG. */
  readonly plot?: string | undefined;
}

export interface LabStreams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

interface Answered {
  readonly question: Question;
  readonly answer: string;
}

/**
 * Runs the lab and prints it.
 *
 * @returns 0, or 1 where a claim does not hold.
 * @throws InvalidArgumentError where there is no such block.
 */
export async function labCommand(options: LabOptions, { stdin, stdout }: LabStreams): Promise<number> {
  const { block, quiet, json } = options;
  if (block !== undefined && blocks[block - 1] === undefined) {
    throw new InvalidArgumentError('block', `a number from 1 to ${blocks.length}`, block);
  }
  const print = (text: string) => void stdout.write(text);
  const printJson = (value: unknown) => print(`${JSON.stringify(value, null, 2)}\n`);
  if (options.list) {
    if (json) printJson(blocks.map(({ number, title, lesson, needs }) => ({ number, title, lesson, needs })));
    else print(renderList(blocks));
    return 0;
  }
  if (options.verify) {
    const { verify } = await import('./verify/index.ts');
    const claims = verify();
    if (json) printJson(claims);
    else print(renderClaims(claims));
    return claims.every((claim) => claim.holds) ? 0 : 1;
  }
  if (options.plot !== undefined) {
    const { plot } = await import('./plot.ts');
    const paths = plot(options.plot);
    if (json) printJson(paths);
    else print(`${paths.join('\n')}\n`);
    return 0;
  }

  const shown = quiet ? [] : block === undefined ? blocks : withPrerequisites(block);
  const withAssembly = block === undefined;
  const answered = options.predict ? await ask(shown, withAssembly, stdin, stdout) : [];
  const told = [];
  for (const each of shown) {
    const measured = await each.measure();
    told.push({ number: each.number, title: each.title, ...measured });
    if (!json) print(renderBlock(each, measured) + renderAnswers(answered, each.number));
  }
  const whole = withAssembly ? assembly() : undefined;
  if (whole !== undefined && !json) print(renderAssembly(whole) + renderAnswers(answered, 'assembly'));
  if (json) printJson({ blocks: told, ...(whole === undefined ? {} : { assembly: whole }) });
  return 0;
}

/** Asks the questions of what will be shown; where there is no terminal any more, the rest stays unanswered. */
async function ask(
  shown: readonly Block[],
  withAssembly: boolean,
  input: Readable,
  output: Writable,
): Promise<readonly Answered[]> {
  const { createInterface } = await import('node:readline/promises');
  const { questions } = await import('./questions.ts');
  const asked = questions.filter(({ block }) =>
    block === 'assembly' ? withAssembly : shown.some(({ number }) => number === block),
  );
  const answered: Answered[] = [];
  const terminal = createInterface({ input });
  const lines = terminal[Symbol.asyncIterator]();
  output.write('Write down what you expect; then see what was measured.\n\n');
  for (const question of asked) {
    output.write(`${question.text}\n> `);
    const { value = '' } = await lines.next();
    output.write('\n');
    answered.push({ question, answer: String(value).trim() });
  }
  terminal.close();
  return answered;
}

function renderAnswers(answered: readonly Answered[], block: number | 'assembly'): string {
  return answered
    .filter(({ question }) => question.block === block)
    .map(
      ({ question, answer }) =>
        `You were asked: ${question.text}\n    you said   ${answer || '(nothing)'}\n    measured   ${question.answer()}\n\n\n`,
    )
    .join('');
}
