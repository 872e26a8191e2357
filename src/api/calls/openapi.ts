/**
 * OpenAPI 3.1 document of the HTTP interface, from the schemas that the routes use.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import type { FastifyPluginAsync } from 'fastify'
import { Type } from 'typebox'
import { ENDPOINTS, SIGNED_REFUSALS } from '../endpoints.ts'
import { COMPONENTS, StreamRecord, time } from '../records.ts'
import { StreamId } from '../requests.ts'
import { wireSchema } from '../wire-names.ts'
import type { ErrorCode } from '../../errors.ts'
import { clientHas } from '../../http/response.ts'
import { VERSION } from '../../version.ts'
import {
  json,
  object,
  operation,
  parameter,
  refused,
  success,
  withReferences,
} from './openapi-operation.ts'

/** Refusals of a stream that needs a playback token, to clients without and with one. */
const ACCESS_REFUSALS = {
  without: ['PLAYBACK_TOKEN_MISSING'],
  with: ['PLAYBACK_TOKEN_INVALID', 'PLAYBACK_TOKEN_EXPIRED'],
} as const

const FILE_REFUSALS = [
  'DIRECTIVES_INVALID',
  'MEDIA_TOO_FAR_AHEAD',
  'STREAM_NOT_FOUND',
  'FILE_NOT_FOUND',
  'RANGE_NOT_SATISFIABLE',
  'MEDIA_LATE',
  'TOO_MANY_WAITING',
  'SHUTTING_DOWN',
] as const

/** Fastify plugin for the prefix `/api`: the document at `openapi.json`, unsigned, since it holds no secret. */
export const openApi: FastifyPluginAsync = async (app) => {
  const bytes = Buffer.from(JSON.stringify(openApiDocument()))
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  app.get('/openapi.json', (request, reply) => {
    reply.headers({
      etag,
      'cache-control': 'public, max-age=600',
      'access-control-allow-origin': '*',
    })
    if (clientHas(etag, request.headers['if-none-match'])) reply.code(304).send()
    else reply.type('application/json; charset=utf-8').send(bytes)
  })
}

export function openApiDocument(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version: VERSION,
      description: 'Live SRT ingest to HLS delivery. docs/api.md explains the calls.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths: {
      ...signedPaths(),
      ...unsignedPaths(),
      ...viewerPaths(ACCESS_REFUSALS.without),
      ...withToken(viewerPaths(ACCESS_REFUSALS.with, ['ROUTE_NOT_FOUND'])),
    },
    components: {
      schemas: Object.fromEntries(
        Object.entries(COMPONENTS).map(([title, schema]) => [
          title,
          withReferences(wireSchema(schema)),
        ]),
      ),
      securitySchemes: {
        metricsToken: { type: 'http', scheme: 'bearer', description: '`METRICS_TOKEN`, if set' },
        signature: {
          type: 'apiKey',
          in: 'header',
          name: 'LT-SIGNATURE',
          description:
            'HMAC-SHA256 of the exact bytes of the body, keyed with HMAC_SECRET, in hexadecimal',
        },
      },
    },
  }
}

const WARNINGS = {
  type: 'array',
  items: { type: 'string' },
  description: 'fields of the request that the call does not have; absent without any',
}

function signedPaths(): object {
  const paths = Object.entries(ENDPOINTS).map(([name, endpoint]) => {
    const { methods, summary, body, data, refusals } = endpoint
    const operations = methods.map((method) => [
      method.toLowerCase(),
      {
        // Clients make function names of them.
        operationId: methods.length > 1 ? `${method.toLowerCase()}-${name}` : name,
        summary,
        security: [{ signature: [] }],
        requestBody: { required: true, content: json(wireSchema(body)) },
        responses: {
          200: {
            description: 'Success',
            content: json(success(wireSchema(data), { warnings: WARNINGS })),
          },
          ...refused([...SIGNED_REFUSALS, ...refusals]),
        },
      },
    ])
    return [`/api/${name}`, Object.fromEntries(operations)]
  })
  return Object.fromEntries(paths) as object
}

function unsignedPaths(): object {
  return {
    '/api/openapi.json': {
      get: operation(
        'openapi',
        'This document',
        {
          200: { description: 'Success', content: json({ type: 'object' }) },
          304: { description: 'The client has this version' },
        },
        ['ADDRESS_FORBIDDEN', 'TOO_MANY_API_REQUESTS'],
      ),
    },
    '/health/live': {
      get: operation('health-live', 'Whether the process runs', {
        200: { description: 'It runs', content: json(object({ status: { const: 'live' } })) },
      }),
    },
    '/health/ready': {
      get: operation('health-ready', 'Whether the process is to get new streams', {
        200: { description: 'Ready', content: json(readiness('ready')) },
        503: { description: 'Not ready', content: json(readiness('unready')) },
      }),
    },
    '/metrics': {
      get: {
        ...operation(
          'metrics',
          'Figures of the service for Prometheus, on `METRICS_PORT` if it is set',
          { 200: { description: 'Success', content: { 'text/plain': {} } } },
          ['ADDRESS_FORBIDDEN', 'METRICS_TOKEN_INVALID'],
        ),
        security: [{}, { metricsToken: [] }],
      },
    },
  }
}

/**
 * Paths of playback, the same with a playback token.
 *
 * @param access  refusals of paths that need a token
 * @param refusals  refusals of each path beside its own
 */
function viewerPaths(
  access: readonly ErrorCode[],
  refusals: readonly ErrorCode[] = [],
): Record<string, object> {
  const streamId = parameter('path', 'stream_id', StreamId)
  const file = parameter('path', 'file', { type: 'string' })
  const directives = Object.entries({
    _HLS_msn: { type: 'integer', minimum: 0 },
    _HLS_part: { type: 'integer', minimum: 0 },
    _HLS_skip: { type: 'string' },
  }).map(([name, schema]) => parameter('query', name, schema))
  const media = { 'video/mp2t': {}, 'video/mp4': {}, 'audio/mp4': {} }
  const playlist = { 'application/vnd.apple.mpegurl': { schema: { type: 'string' } } }
  return {
    '/video/{stream_id}': {
      parameters: [streamId],
      get: operation(
        'access',
        'Whether the client may read the files of a stream, for proxies; only with `PLAYBACK_SECRET`',
        { 204: { description: 'It may' } },
        [...access, 'ROUTE_NOT_FOUND'],
      ),
    },
    '/video/{stream_id}/preview.ts': {
      parameters: [streamId],
      get: operation(
        'preview',
        'The newest key frame of a stream, as a transport stream of one frame',
        {
          200: { description: 'The key frame', content: { 'video/mp2t': {} } },
          304: { description: 'The client has this key frame' },
        },
        [...access, 'STREAM_NOT_FOUND', 'FILE_NOT_FOUND', ...refusals],
      ),
      options: preflight('preview', refusals),
    },
    '/video/{stream_id}/{file}': {
      parameters: [streamId, file, ...directives],
      get: operation(
        'file',
        'A playlist, segment, part or init segment of a stream',
        {
          200: { description: 'The file', content: { ...playlist, ...media } },
          206: { description: 'A range of media', content: media },
          304: { description: 'The client has this version' },
        },
        [...access, ...FILE_REFUSALS, ...refusals],
      ),
      options: preflight('file', refusals),
    },
    '/watch/{stream_id}': {
      parameters: [streamId],
      get: operation(
        'watch',
        'A page that plays a stream',
        { 200: { description: 'The page', content: { 'text/html': {} } } },
        ['STREAM_NOT_FOUND', ...refusals],
      ),
    },
    '/watch/{stream_id}/state': {
      parameters: [streamId],
      get: operation(
        'watch-state',
        'State of a stream, for the page',
        { 200: { description: 'Success', content: json(success(pageState())) } },
        [...access, 'STREAM_NOT_FOUND', ...refusals],
      ),
    },
  }
}

/** The paths below `/t/{token}`. */
function withToken(paths: Readonly<Record<string, object>>): object {
  const token = { ...parameter('path', 'token', { type: 'string' }), description: 'playback token' }
  const copies = Object.entries(paths).map(([path, item]) => {
    const { parameters, ...operations } = item as { parameters: object[] }
    const renamed = Object.entries<{ operationId?: string }>(operations).map(
      ([method, each]) =>
        [method, { ...each, operationId: `${each.operationId}-with-token` }] as const,
    )
    return [
      `/t/{token}${path}`,
      { parameters: [token, ...parameters], ...Object.fromEntries(renamed) },
    ]
  })
  return Object.fromEntries(copies) as object
}

function preflight(operationId: string, refusals: readonly ErrorCode[]): object {
  const responses = { 204: { description: 'Any origin and any request header' } }
  return operation(`${operationId}-preflight`, 'Preflight of CORS', responses, refusals)
}

function pageState(): object {
  const { status, live } = StreamRecord.properties
  return Type.Object({
    status,
    live,
    time: time('clock of the service'),
    since: Type.Optional(time('since when it has this status')),
    stops_at: Type.Optional(time('in `INTERRUPTED`: when it stops, if no encoder comes')),
    slate: Type.Optional(Type.Literal(true, { description: 'a slate plays' })),
    playable: Type.Optional(
      Type.Literal(true, { description: 'the first parts can be played; `live` follows' }),
    ),
    rewind: Type.Optional(Type.Literal(true, { description: '`dvr.m3u8` can be played' })),
  })
}

function readiness(status: string): object {
  const reasons = { type: 'array', items: { type: 'string' } }
  return object({ status: { const: status }, reasons })
}
