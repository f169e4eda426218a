import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { InvalidArgumentError } from '../../errors.ts';
import type { EtcdTls } from './endpoints.ts';

/** How this client shows itself and whom it trusts. @throws InvalidArgumentError where that is no PEM, or does not fit together. */
export function tlsCredentials({ ca, cert, key }: EtcdTls): ChannelCredentials {
  // Node takes a list of authorities that has none in it, and then trusts nobody.
  if (ca !== undefined) certificateIn('tls.ca', ca);
  if (cert !== undefined && key !== undefined) checkPair(certificateIn('tls.cert', cert), key);
  return credentials.createSsl(toBuffer(ca), toBuffer(key), toBuffer(cert));
}

function certificateIn(parameter: string, pem: Uint8Array | string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new InvalidArgumentError(
      parameter,
      'the text of a certificate in PEM, not the path of a file',
      pem,
    );
  }
}

function checkPair(certificate: X509Certificate, key: Uint8Array | string): void {
  let fits: boolean;
  try {
    fits = certificate.checkPrivateKey(createPrivateKey(Buffer.from(key)));
  } catch (error) {
    // What was given is not shown: it may be a secret all the same.
    const said = error instanceof Error ? error.message : 'unreadable';
    throw new InvalidArgumentError('tls.key', 'the text of a key in PEM that needs no passphrase', said);
  }
  if (!fits) throw new InvalidArgumentError('tls.key', 'the key of tls.cert', 'that of another certificate');
}

function toBuffer(pem: Uint8Array | string | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}
