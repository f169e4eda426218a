/** What is known of an object besides its content. */
export interface S3Head {
  readonly ETag?: string | undefined;
  readonly Metadata?: Readonly<Record<string, string>> | undefined;
}

/** What a fence sends to write; the driver knows more parameters, and gets them as they are. */
export interface S3Put {
  Bucket: string;
  Key: string;
  Body: Uint8Array;
  Metadata: Record<string, string>;
  IfMatch?: string;
  IfNoneMatch?: string;
}

/**
 * What a fence calls: `S3` of `@aws-sdk/client-s3` has it. Of an `S3Client` it is one line each, as in
 * `putObject: (input) => client.send(new PutObjectCommand(input))`.
 */
export interface S3Like {
  headObject(input: { Bucket: string; Key: string }): Promise<S3Head>;
  getObject(input: {
    Bucket: string;
    Key: string;
  }): Promise<S3Head & { readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined }>;
  putObject(input: S3Put): Promise<unknown>;
}
