/** How to be sure of the server, and it of the client. Each is PEM, or the path of a file of it. */
export interface TlsSettings {
  /** Who signed the server's certificate, where no public authority did. */
  readonly ca?: string;
  /** The client's certificate and its key, where the server asks for one. */
  readonly cert?: string;
  readonly key?: string;
}
