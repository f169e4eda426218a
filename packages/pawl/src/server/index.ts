export { hashToken, type KnownToken } from './authenticator.ts';
export { DEFAULT_LIMITS, type Limits } from './limits.ts';
export type { LogEntry, LogLevel } from './log.ts';
export { DEFAULT_PORT, type ServeOptions, type ServerTls } from './options.ts';
export type { Permission, Right } from './principal.ts';
export { type PawlServer, serve } from './serve.ts';
