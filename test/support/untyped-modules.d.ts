/** The parts that tests use of modules that come without types. */

declare module 'mux.js/lib/tools/ts-inspector.js' {
  interface InspectedTrack {
    readonly type: 'video' | 'audio'
    readonly pts: number
    readonly dts: number
    readonly ptsTime: number
    readonly dtsTime: number
  }
  const inspector: {
    inspect(
      bytes: Uint8Array,
      baseTimestamp?: number,
    ): {
      readonly video?: readonly InspectedTrack[]
      readonly audio?: readonly InspectedTrack[]
      readonly firstKeyFrame?: InspectedTrack
    } | null
  }
  export default inspector
}

declare module 'mux.js/lib/mp4/probe.js' {
  const probe: {
    tracks(init: Uint8Array): readonly unknown[]
    timescale(init: Uint8Array): Readonly<Record<number, number>>
    startTime(timescales: Readonly<Record<number, number>>, fragment: Uint8Array): number
    getEmsgID3(segment: Uint8Array, offsetSec: number): readonly unknown[]
  }
  export default probe
}

declare module 'hls.js/dist/hls.mjs' {
  export const M3U8Parser: {
    parseLevelPlaylist(
      text: string,
      baseUrl: string,
      id: number,
      type: string,
      levelUrlId: number,
      variables: null,
    ): {
      readonly playlistParsingError: Error | null
      readonly live: boolean
      readonly startSN: number
      readonly endSN: number
      readonly lastPartSn: number
      readonly lastPartIndex: number
      readonly skippedSegments: number
      readonly partHoldBack: number
      readonly partTarget: number
      readonly canBlockReload: boolean
      readonly canSkipUntil: number
      readonly preloadHint?: Readonly<Record<string, string>>
    }
  }
}

declare module '@20minutes/s3rver' {
  import type { RequestListener } from 'node:http'

  export default class S3rver {
    constructor(options: {
      readonly directory: string
      readonly silent: boolean
      readonly configureBuckets: readonly {
        readonly name: string
        readonly configs: readonly string[]
      }[]
    })
    readonly store: {
      existsObject(bucket: string, key: string): Promise<boolean>
      getMetadata(bucket: string, key: string): Promise<{ readonly etag: string }>
    }
    configureBuckets(): Promise<unknown>
    callback(): RequestListener
  }
}

declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  interface Request extends IncomingMessage {
    readonly body: unknown
  }
  interface Response extends ServerResponse {
    status(code: number): this
    send(body: string): unknown
    json(body: unknown): unknown
  }
  type Handler = (request: Request, response: Response, next: () => void) => void
  interface Application extends RequestListener {
    get(path: string, handler: Handler): this
    use(...handlers: (string | Handler)[]): this
  }
  const express: { (): Application; json(): Handler }
  export default express
}
