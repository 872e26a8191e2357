/**
 * HTTP application of the service: the signed API, metrics, health, public playback and the player page, on Fastify.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock, type Clock } from '../clock.ts'
import type { NodeCalls } from '../cluster/node-calls.ts'
import type { EdgeReport } from '../contract/edge-report.ts'
import type { ErrorCode } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { allowAddresses, limitRate } from './access.ts'
import { admin } from './admin/admin.ts'
import type { DashboardOptions } from './admin/admin-options.ts'
import { api, type ApiOptions } from './api.ts'
import { edgeReports } from './edge-reports.ts'
import { closeAfterReplies, createApp, type ApplicationOptions } from './create-app.ts'
import { asRefusal } from './error-handler.ts'
import { limitGuesses } from './guesses.ts'
import { health } from './health.ts'
import { metrics as metricsPlugin, type MetricsOptions } from './metrics.ts'
import { requireOwnership, verifyNodeCalls, type FenceOf } from './node-access.ts'
import { nodeRoutes, type NodeRoutes } from './node-routes.ts'
import { openApi } from './openapi.ts'
import { playback as playbackPlugin, type OnSent } from './playback.ts'
import { withRemote, type RemoteStreams } from './remote-streams.ts'
import type { PlaybackSource, StreamControl } from '../contract/streams.ts'
import { watch } from './watch.ts'

export interface AppOptions extends ApplicationOptions {
  /** Receiver of API calls; undefined: no `/api`. */
  readonly control?: StreamControl | undefined
  /** Options of `/admin`, beside `/api`; undefined: no dashboard. */
  readonly dashboard?: DashboardOptions | undefined
  /** Source of `/video` and `/watch`; undefined: neither. */
  readonly playback?: PlaybackSource | undefined
  /** Verifies the tokens of viewers; default none, which makes playback public. */
  readonly playbackTokens?: PlaybackTokens | undefined
  /** See `PlaybackOptions`. */
  readonly onSent?: OnSent
  /** Called with the code of each refusal of an API call or of metrics. */
  readonly onRefused?: (code: ErrorCode) => void
  /** Undefined: no `/metrics`. */
  readonly metrics?: MetricsOptions | undefined
  /** Reads the values of `HMAC_SECRET`, any of which may have signed a request. */
  readonly readHmacSecrets: () => readonly string[]
  /** Maximum age of API requests in seconds; default 0, which allows any age. */
  readonly maxAgeSec?: number
  /** Clock for the age and the rate of requests. */
  readonly clock?: Clock
  /** Clients that may use the API and read metrics; default: all. */
  readonly apiFrom?: BlockList | undefined
  /** Requests per second of one client below `/api`; default 0, no limit. */
  readonly apiRate?: number
  /** See `HealthOptions`; default: always ready. */
  readonly listUnreadyReasons?: () => readonly string[]
  /** Receives the reports of workers, on their Unix socket; undefined: none. */
  readonly onEdgeReport?: ((report: EdgeReport) => void) | undefined
  /** Verifies the calls of other nodes; default: they are refused. */
  readonly nodeCalls?: NodeCalls | undefined
  /** Fences of the streams of this node; default: replies to other nodes have none, and no stream is refused. */
  readonly fenceOf?: FenceOf | undefined
  /** Streams of other nodes, for viewers; default: none. Requires `fenceOf`. */
  readonly remote?: RemoteStreams | undefined
  /** Calls of other nodes at this one; default: none. */
  readonly nodeRoutes?: NodeRoutes | undefined
  /** Receives a line for each API call that changes something; default: none is written. */
  readonly auditLogger?: Logger
}

/**
 * @returns an application that does not listen yet
 * @throws {MillraceError} `CONFIG_INVALID` if the certificate cannot be used
 */
export function buildApp(options: AppOptions): FastifyInstance {
  const { control, dashboard, playback, playbackTokens: tokens, metrics } = options
  const { apiFrom, apiRate = 0, listUnreadyReasons = () => [] } = options
  const { nodeCalls, fenceOf, remote } = options
  const app = createApp(options)
  verifyNodeCalls(app, nodeCalls)
  if (options.onEdgeReport) void app.register(edgeReports, { onReport: options.onEdgeReport })
  void app.register(health, { prefix: '/health', listUnreadyReasons })
  if (options.nodeRoutes !== undefined) {
    void app.register(nodeRoutes, { prefix: '/node', routes: options.nodeRoutes })
  }
  void app.register(async (internal) => {
    internal.addHook('onError', async (_request, _reply, error) => {
      options.onRefused?.(asRefusal(error).code)
    })
    if (apiFrom !== undefined) allowAddresses(internal, apiFrom)
    if (control !== undefined) {
      const signed = apiOptions(control, options)
      void internal.register(async (limited) => {
        if (apiRate > 0) {
          const { clock } = signed
          limitRate(limited, { perSec: apiRate, clock, refusal: 'TOO_MANY_API_REQUESTS' })
        }
        void limited.register(api, { prefix: '/api', ...signed })
        void limited.register(openApi, { prefix: '/api' })
      })
      if (dashboard !== undefined) {
        const { clock, auditLogger } = signed
        const own = { ...dashboard, control, clock, auditLogger }
        void internal.register(admin, { prefix: '/admin', ...own })
      }
    }
    if (metrics !== undefined)
      void internal.register(metricsPlugin, { prefix: '/metrics', ...metrics })
  })
  if (playback !== undefined) {
    const sent = options.onSent && { onSent: options.onSent }
    const sources = [['', remote?.open] as const, ['/t/:token', remote?.protected] as const]
    for (const [prefix, others] of tokens === undefined ? sources.slice(0, 1) : sources) {
      const source = others && fenceOf ? withRemote(playback, others, fenceOf) : playback
      void app.register(async (owned) => {
        if (fenceOf !== undefined) requireOwnership(owned, fenceOf)
        // Workers, which are all peers that are trusted, limit their clients themselves.
        if (remote !== undefined && options.trustPeers !== true) {
          const isOwn = (id: string) => playback.findStream(id) !== undefined
          limitGuesses(owned, (id, name) => isOwn(id) || remote.isKnown(id, name))
        }
        void owned.register(playbackPlugin, {
          prefix: `${prefix}/video`,
          source,
          tokens,
          ...sent,
          beforeRouter: prefix === '',
          repeated: options.guard.repeated,
        })
      })
      void app.register(watch, { prefix: `${prefix}/watch`, source: playback, tokens, remote })
    }
  }
  closeAfterReplies(app, options.guard)
  return app
}

function apiOptions(control: StreamControl, options: AppOptions): ApiOptions {
  const { readHmacSecrets, maxAgeSec = 0, clock = machineClock, auditLogger } = options
  return { control, readHmacSecrets, maxAgeSec, clock, auditLogger }
}
