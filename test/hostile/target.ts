/**
 * The service that an attack is pointed at. All of it is on the loopback.
 *
 * @module
 */

export interface Target {
  readonly host: string
  readonly httpPort: number
  readonly srtPort: number
  readonly hmacSecret: string
  readonly jwtSecret: string
  /** Process of the service, where it is not the test's own. */
  readonly pid?: number
}
