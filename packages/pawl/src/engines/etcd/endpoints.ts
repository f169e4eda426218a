import { InvalidArgumentError } from '../../errors.ts';

export interface EtcdTls {
  /** Certificates of the authorities to trust, PEM; the system's unless set. */
  readonly ca?: Uint8Array | string;
  /** This client's own certificate and its key, PEM, where etcd asks for them. */
  readonly cert?: Uint8Array | string;
  readonly key?: Uint8Array | string;
}

export interface EtcdAddress {
  readonly endpoints: readonly string[];
  readonly tls?: EtcdTls | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
}

/** One member of etcd as it is reached. */
export interface Endpoint {
  readonly target: string;
  readonly secure: boolean;
}

/** @throws InvalidArgumentError */
export function parseEndpoints(address: EtcdAddress): readonly Endpoint[] {
  const { endpoints, tls, user, password } = address;
  const expected = 'a list of addresses such as "http://10.0.0.1:2379"';
  if (!Array.isArray(endpoints) || endpoints.length === 0) {
    throw new InvalidArgumentError('endpoints', expected, endpoints);
  }
  if ((user === undefined) !== (password === undefined)) {
    throw new InvalidArgumentError('user', 'given together with password', user);
  }
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined)) {
    throw new InvalidArgumentError('tls.cert', 'given together with tls.key', tls.cert);
  }
  return endpoints.map((endpoint): Endpoint => {
    const [, scheme, target] =
      /^(?:(https?):\/\/)?((?:\[[\da-fA-F:]+\]|[\w.-]+):\d{1,5})\/?$/.exec(endpoint) ?? [];
    if (target === undefined) throw new InvalidArgumentError('endpoints', expected, endpoint);
    if (scheme === 'http' && tls !== undefined) {
      throw new InvalidArgumentError('endpoints', 'https:// addresses where tls is set', endpoint);
    }
    return { target, secure: scheme === 'https' || tls !== undefined };
  });
}
