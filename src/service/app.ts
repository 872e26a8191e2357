/**
 * HTTP application of the service: the signed API, metrics, health, public playback and the player page, on Fastify.
 *
 * @module
 */
import type { BlockList } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { PlaybackTokens } from '../auth/playback-token.ts'
import { machineClock, type Clock } from '../timing/clock.ts'
import type { NodeCalls } from '../auth/node-calls.ts'
import type { ErrorCode } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { allowAddresses, limitRate, trustOf } from '../http/client-address.ts'
import { admin, type AdminOptions } from '../admin/admin.ts'
import { api, type ApiOptions } from '../api/calls/calls.ts'
import { workerReports, type WorkerReport } from './viewers/worker-reports.ts'
import { addFrontPage, addNoDashboard } from './front-page.ts'
import { closeAfterResponses, createApp, type ApplicationOptions } from '../http/create-app.ts'
import { asRefusal } from '../http/error-handler.ts'
import { health } from '../http/health.ts'
import { metrics as metricsPlugin, type MetricsOptions } from '../http/metrics.ts'
import { verifyNodeCalls, type FenceOf } from '../http/node-access.ts'
import { nodeRoutes, type NodeRoutes } from './node-routes.ts'
import { openApi } from '../api/calls/openapi.ts'
import type { OnSent } from '../playback/handler.ts'
import { withRemote, type RemoteStreams } from '../playback/remote-streams.ts'
import { PlaybackRoutes, type IsKnown, type PlaybackRoutesOptions } from '../playback/routes.ts'
import type { PlaybackSource } from '../playback/playback-source.ts'
import type { StreamControl } from '../api/control.ts'
import { watch } from '../playback/watch.ts'

export interface AppOptions extends ApplicationOptions {
  /** Receiver of API calls; undefined: no `/api`. */
  readonly control?: StreamControl | undefined
  /** Options of `/admin`, beside `/api`; undefined: no dashboard. */
  readonly dashboard?: Omit<AdminOptions, 'control' | 'clock' | 'auditLogger'> | undefined
  /** Source of `/video` and `/watch`; undefined: neither. */
  readonly playback?: PlaybackSource | undefined
  /** Verifies the tokens of viewers; default none, which makes playback public. */
  readonly playbackTokens?: PlaybackTokens | undefined
  /** See `WatchOptions`. */
  readonly frameAncestors?: string | undefined
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
  readonly onWorkerReport?: ((report: WorkerReport) => void) | undefined
  /** Verifies the calls of other nodes; default: they are refused. */
  readonly nodeCalls?: NodeCalls | undefined
  /** Fences of the streams of this node; default: replies to other nodes have none, and no stream is refused. */
  readonly fenceOf?: FenceOf | undefined
  /** Streams of other nodes, for viewers; default: none. Requires `fenceOf`. */
  readonly remote?: RemoteStreams | undefined
  /** Calls of other nodes at this one; default: none. */
  readonly nodeRoutes?: NodeRoutes | undefined
  /** Whether `/` says what there is; default: true. */
  readonly hasFrontPage?: boolean
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
  const { frameAncestors, remote, hasFrontPage = true } = options
  const routes = playback && new PlaybackRoutes(routesOptions(playback, options))
  const app = createApp({ ...options, ...(routes && { before: routes.handle }) })
  app.addHook('preClose', async () => routes?.close())
  verifyNodeCalls(app, options.nodeCalls)
  const { onWorkerReport: onReport } = options
  if (onReport !== undefined) void app.register(workerReports, { onReport })
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
      } else if (hasFrontPage) addNoDashboard(internal)
    }
    if (metrics !== undefined)
      void internal.register(metricsPlugin, { prefix: '/metrics', ...metrics })
  })
  const [hasPlayback, hasApi] = [playback !== undefined, control !== undefined]
  if (hasFrontPage && (hasPlayback || hasApi)) {
    const [hasTokens, hasDashboard] = [tokens !== undefined, dashboard !== undefined]
    addFrontPage(app, { hasPlayback, hasTokens, hasApi, hasDashboard })
  }
  if (playback !== undefined) {
    for (const prefix of tokens === undefined ? ['/watch'] : ['/watch', '/t/:token/watch']) {
      void app.register(watch, { prefix, source: playback, tokens, remote, frameAncestors })
    }
  }
  closeAfterResponses(app, options.guard)
  return app
}

function routesOptions(own: PlaybackSource, options: AppOptions): PlaybackRoutesOptions {
  const { playbackTokens: tokens, onSent, nodeCalls, fenceOf, remote } = options
  const { trustProxy, trustPeers = false, logger } = options
  const withOthers = (others: PlaybackSource | undefined) => {
    const source = others && fenceOf ? withRemote(own, others, fenceOf) : own
    return { source, tokens, onSent }
  }
  const isKnown: IsKnown | undefined =
    remote && ((id, name) => own.findStream(id) !== undefined || remote.isKnown(id, name))
  return {
    open: withOthers(remote?.open),
    guarded: tokens && withOthers(remote?.protected),
    nodeCalls,
    fenceOf,
    // Workers, which are all peers that are trusted, limit their clients themselves.
    isKnown: trustPeers ? undefined : isKnown,
    trust: trustOf(trustProxy, trustPeers),
    logger,
  }
}

function apiOptions(control: StreamControl, options: AppOptions): ApiOptions {
  const { readHmacSecrets, maxAgeSec = 0, clock = machineClock, auditLogger } = options
  return { control, readHmacSecrets, maxAgeSec, clock, auditLogger }
}
