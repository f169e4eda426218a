/* Packages of others that Pawl does not depend on: a peer is tortured where its package stands beside Pawl. */

/** Whether a package can be loaded from here. */
export function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** Loads a package, of which no more is known than `M`, what is called on it: nobody needs it, or its types, to compile Pawl. */
export async function loadPackage<M>(name: string): Promise<M> {
  return (await import(name)) as M;
}
