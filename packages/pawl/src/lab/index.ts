export { assembly } from './assembly.ts';
export { blocks } from './blocks/index.ts';
export type { Block, Measured, Table } from './lesson.ts';
export { type Claim, verify } from './verify/index.ts';
