/**
 * The attacked service, on the loopback.
 *
 * @module
 */

export interface Target {
  readonly host: string
  readonly httpPort: number
  readonly srtPort: number
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Process of the service, if it is not that of the test. */
  readonly pid?: number
}
