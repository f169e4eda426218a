import type { BreakOutcome } from '../../core/commands.ts';
import { isPawlError } from '../../errors.ts';
import type { LockService } from '../../node/service.ts';
import type { CallOf, NamedToken } from '../../protocol/calls.ts';

/**
 * Whether a release whose answer was lost, and that was then answered with "not held", has itself released: the session
 * lives, and no grant of it was broken, so there is nothing else that could have ended the grants. In doubt it says no.
 */
export async function releaseHappened(
  service: LockService,
  session: string,
  grants: readonly NamedToken[],
): Promise<boolean> {
  try {
    const states = await Promise.all(grants.map(({ name }) => service.inspect(name)));
    const broken = states.some(
      ({ lastBreak }, i) => lastBreak !== null && lastBreak.token >= (grants[i]?.token ?? 0n),
    );
    // A session that lives now lived when its locks were looked at, and until it ends what was broken is remembered.
    return !broken && (await service.keepAlive(session, [])).alive;
  } catch (error) {
    // Whoever may acquire need not be allowed to look.
    if (isPawlError(error) && error.code === 'PAWL_FORBIDDEN') return false;
    throw error;
  }
}

/** What a forced release whose answer was lost came to, if the lock's record shows that it happened. */
export async function breakHappened(
  service: LockService,
  { name, token, reason, by }: CallOf<'breakHold'>,
): Promise<BreakOutcome | undefined> {
  const { lastBreak } = await service.inspect(name);
  if (lastBreak?.token !== token || lastBreak.reason !== reason || lastBreak.by !== by) return undefined;
  return { kind: 'broken', owner: lastBreak.owner };
}
