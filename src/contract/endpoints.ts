/**
 * Endpoints of the signed API, each declared once: the routes, the OpenAPI document and the client follow from it.
 *
 * @module
 */
import type { Static, TObject } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { NodeList, StartedStream, StreamPage, StreamRecord } from './answers.ts'
import {
  KickBody,
  NodesBody,
  StartStreamBody,
  StopStreamBody,
  StreamBody,
  StreamsBody,
} from './schema.ts'

interface Endpoint {
  readonly methods: readonly ('GET' | 'POST')[]
  readonly summary: string
  readonly body: TObject
  /** `data` of a success. */
  readonly data: TObject
  /** Refusals beside `SIGNED_REFUSALS`. */
  readonly refusals: readonly ErrorCode[]
}

/** Endpoints by their path below `/api/`. */
export const ENDPOINTS = {
  'start-stream': {
    methods: ['POST'],
    summary: 'Starts a stream, or issues another stream key for a running one',
    body: StartStreamBody,
    data: StartedStream,
    refusals: ['TOO_MANY_STREAMS', 'REGISTRY_UNAVAILABLE', 'SHUTTING_DOWN'],
  },
  'stop-stream': {
    methods: ['POST'],
    summary: 'Disconnects the encoder and ends the playlist',
    body: StopStreamBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  kick: {
    methods: ['POST'],
    summary: 'Disconnects the encoder; the stream goes on',
    body: KickBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  status: {
    // POST too, since `fetch` cannot send a body with GET.
    methods: ['GET', 'POST'],
    summary: 'The record of a stream',
    body: StreamBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  streams: {
    methods: ['POST'],
    summary: 'The records of all streams, in pages',
    body: StreamsBody,
    data: StreamPage,
    refusals: ['REGISTRY_UNAVAILABLE'],
  },
  nodes: {
    methods: ['POST'],
    summary: 'The ingest nodes of the cluster',
    body: NodesBody,
    data: NodeList,
    refusals: ['REGISTRY_UNAVAILABLE'],
  },
} as const satisfies Record<string, Endpoint>

/** Refusals of any request to the API, in the order of the checks. */
export const SIGNED_REFUSALS = [
  'ADDRESS_FORBIDDEN',
  'TOO_MANY_API_REQUESTS',
  'SIGNATURE_MISSING',
  'SIGNATURE_INVALID',
  'CONTENT_TYPE_UNSUPPORTED',
  'BODY_TOO_LARGE',
  'TOO_MANY_BODIES',
  'BODY_INVALID',
  'REQUEST_EXPIRED',
] as const satisfies readonly ErrorCode[]

export type EndpointName = keyof typeof ENDPOINTS

export type RequestBody<Name extends EndpointName> = Static<(typeof ENDPOINTS)[Name]['body']>

export type AnswerData<Name extends EndpointName> = Static<(typeof ENDPOINTS)[Name]['data']>
