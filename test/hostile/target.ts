/**
 * The attacked service, on the loopback.
 *
 * @module
 */

export interface Target {
  readonly host: string
  readonly httpPort: number
  readonly srtPort: number
  /** Absent unless bonded lines are taken. */
  readonly srtlaPort?: number
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Process of the service, if it is not that of the test. */
  readonly pid?: number
}

/** Target of attacks that only need HTTP. */
export function targetAt(httpPort: number): Target {
  return { host: '127.0.0.1', httpPort, srtPort: 0, hmacSecret: '', jwtSecret: '' }
}
