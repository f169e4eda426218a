export { type FastifyLikeReply, type FastifyLikeRequest, fastifyFence } from './fastify.ts';
export { type FetchLease, fencedFetch } from './fenced-fetch.ts';
export { bearerOf, FENCING_TOKEN } from './header.ts';
export { type HonoLikeContext, honoFence } from './hono.ts';
export { type MemoryFence, memoryFence } from './memory-fence.ts';
export { expressFence, nodeFence } from './node.ts';
export type { FenceStore, HttpFenceOptions } from './options.ts';
export { type Problem, problemOf } from './problem.ts';
