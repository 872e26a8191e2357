/**
 * Endpoints of the signed API, each declared once: the routes, the audit log, the OpenAPI document and the client follow
 * from it.
 *
 * @module
 */
import type { TObject } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import { Clip, NodeList, StartedStream, StreamPage, StreamRecord } from './records.ts'
import {
  ClipBody,
  KickBody,
  NodesBody,
  RevokeKeyBody,
  StartStreamBody,
  StopStreamBody,
  StreamBody,
  StreamsBody,
  SwitchSourceBody,
} from './requests.ts'
import type { Declared, OnTheWire } from './wire-names.ts'

interface Endpoint {
  readonly methods: readonly ('GET' | 'POST')[]
  readonly summary: string
  /** Whether the audit log has a line for each call: where it changes something. */
  readonly isAudited: boolean
  /** Under the names of the library, as `data`. */
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
    isAudited: true,
    body: StartStreamBody,
    data: StartedStream,
    refusals: ['TOO_MANY_STREAMS', 'REGISTRY_UNAVAILABLE', 'SHUTTING_DOWN'],
  },
  'stop-stream': {
    methods: ['POST'],
    summary: 'Disconnects the encoder and ends the playlist',
    isAudited: true,
    body: StopStreamBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  'revoke-key': {
    methods: ['POST'],
    summary: 'Refuses one stream key from now on, and disconnects its encoder',
    isAudited: true,
    body: RevokeKeyBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  kick: {
    methods: ['POST'],
    summary: 'Disconnects the encoder; the stream goes on',
    isAudited: true,
    body: KickBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  'switch-source': {
    methods: ['POST'],
    summary: 'Puts the main or the backup encoder on air',
    isAudited: true,
    body: SwitchSourceBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'SOURCE_UNAVAILABLE', 'REGISTRY_UNAVAILABLE'],
  },
  clip: {
    methods: ['POST'],
    summary: 'Makes a playlist of a part of an archive',
    isAudited: true,
    body: ClipBody,
    data: Clip,
    refusals: ['ARCHIVE_NOT_FOUND', 'ARCHIVE_UNAVAILABLE'],
  },
  status: {
    // POST too, since `fetch` cannot send a body with GET.
    methods: ['GET', 'POST'],
    summary: 'The record of a stream',
    isAudited: false,
    body: StreamBody,
    data: StreamRecord,
    refusals: ['STREAM_NOT_FOUND', 'REGISTRY_UNAVAILABLE'],
  },
  streams: {
    methods: ['POST'],
    summary: 'The records of all streams, in pages',
    isAudited: false,
    body: StreamsBody,
    data: StreamPage,
    refusals: ['REGISTRY_UNAVAILABLE'],
  },
  nodes: {
    methods: ['POST'],
    summary: 'The ingest nodes of the cluster',
    isAudited: false,
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

/** Name of a call of the API: its path below `/api/`. */
export type EndpointName = keyof typeof ENDPOINTS

/** Body of a call, as it is sent. */
export type RequestBody<Name extends EndpointName> = OnTheWire<
  Declared<(typeof ENDPOINTS)[Name]['body']>
>

/** `data` of the answer to a call, as it is sent. */
export type ResponseData<Name extends EndpointName> = WithNulls<
  OnTheWire<Declared<(typeof ENDPOINTS)[Name]['data']>>
>

/** Fields that the library leaves out where the wire has null, see `orNull`. */
type Nullable = 'live_since' | 'publisher' | 'on_air' | 'next'

type WithNulls<T> = T extends (infer Item)[]
  ? WithNulls<Item>[]
  : T extends object
    ? { [Key in keyof T as Exclude<Key, Nullable>]: WithNulls<T[Key]> } & {
        [Key in keyof T & Nullable]-?: NonNullable<T[Key]> | null
      }
    : T
