/**
 * Connections of the HTTP server, for status and metrics.
 *
 * @module
 */

/** Connections of the HTTP server now, and refusals and disconnections of all ports since it started. */
export interface HttpReport extends HttpCounters {
  readonly connections: number
  /** Memory of responses that wait in sockets, without segments in the cache, in bytes; sampled once a second. */
  readonly bufferedBytes: number
}

export interface HttpCounters {
  /** Connections refused at `HTTP_MAX_CONNECTIONS`, or at the limit of open files if that is lower. */
  readonly refused: number
  /** Connections refused because their address has its share, a quarter of all connections. */
  readonly refusedPerAddress: number
  /** Idle connections closed in favor of new ones. */
  readonly displaced: number
  /** Connections closed after 75 s without a complete request. */
  readonly expired: number
  /** Readers disconnected because they read less than 4 KiB/s for a minute. */
  readonly slow: number
  /** HTTP/2 streams refused because as many requests were open as connections may be. */
  readonly refusedStreams: number
  /** Connections closed for a flood of resets, of frames without requests (HTTP/2), or of tiny pieces of bodies. */
  readonly flooding: number
  /** Readers disconnected because responses exceeded `HTTP_MAX_BUFFERED_MIB`. */
  readonly overMemory: number
}

export const NO_COUNTERS: HttpCounters = {
  refused: 0,
  refusedPerAddress: 0,
  displaced: 0,
  expired: 0,
  slow: 0,
  refusedStreams: 0,
  flooding: 0,
  overMemory: 0,
}
