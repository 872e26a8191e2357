/** Options of an endpoint that tests of all kinds share. */
export const ENDPOINT_OPTIONS = {
  latencyMs: 120,
  maxLatencyMs: 8000,
  idleTimeoutUs: 5_000_000,
  acceptTimeoutUs: 2_500_000,
}
