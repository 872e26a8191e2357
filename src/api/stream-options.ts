/**
 * Options that start-stream gives a stream, none of them a secret. Type, name on the wire, check, and place in records, in
 * the registry of a cluster and in the audit log follow from the row of an option.
 *
 * To add one for encoders or viewers:
 * - its row in `POLICY_OPTIONS`
 * - its reader, which finds it in `LiveStream.policy`; one that restricts viewers: `playback/access.ts`, which has
 *   `PlayableStream.policy`, and `egress/reader-admission.ts`. Edges serve from memory, and ask no owner: they have what
 *   `cluster/edge/edge-streams.ts` gives them
 * - if settings forbid it: `checkOptions` in `service/stream-defaults.ts`; if a cluster does:
 *   `cluster/node/control/start-registered.ts`
 *
 * To add one for the media:
 * - its row and bounds in `MEDIA_OPTIONS`
 * - `hls/media-options.ts`, which checkpoints have: optional, in the unit of the packager, within wider bounds
 * - the setting that it replaces: of the same name in `hls` of `config/schema.ts`, with advice in `test/config/settings-page.ts`
 * - its reader in `hls/`, which has it in its options; if the unit differs, `streamMedia` in `service/stream-defaults.ts`
 * - if settings forbid it: `checkOptions` there
 *
 * Then `docs/api.md`, also below "What is lost" there, `web/dashboard/dialogs.ts` if people set it, and `npm run docs`. A field of
 * start-stream that is no option, as `push_urls`, stands in `requests.ts`.
 *
 * @module
 */
import { Type, type Static, type TOptional, type TSchema, type TUnsafe } from 'typebox'
import { isAddressBlock } from '../binary/ip-address.ts'
import type { Format } from '../hls/file-names.ts'
import { MAX_LATENCY_MS } from '../srt/wire/limits.ts'
import type { Declared } from './wire-names.ts'

export const FORMATS = ['ts', 'cmaf'] as const satisfies readonly Format[]

/** Bounds of settings that a stream may have of its own. */
export const SEGMENT_SEC = { minimum: 0.5, maximum: 60 }
export const PART_MS = { minimum: 100, maximum: 1000 }
export const PLAYLIST_SEGMENTS = { minimum: 3, maximum: 1000 }
export const DVR_SEC = { minimum: 0, maximum: 86_400 }
export const LATENCY_MS = { minimum: 20, maximum: MAX_LATENCY_MS }
const MAX_ADDRESS_BLOCKS = 64

export const flag = () => Type.Boolean({ description: 'must be true or false' })

interface Row<Schema extends TSchema> {
  /** Type and bounds in a request; the description completes the error message. */
  readonly schema: Schema
  /** What a record says of the value. */
  readonly recorded: string
}

/** Options for the media: those of the first start, until the stream stops. */
export const MEDIA_OPTIONS = {
  /** `HLS_FORMATS` of the stream until it stops: at least one. */
  formats: row(
    Type.Array(Type.Enum([...FORMATS]), {
      minItems: 1,
      uniqueItems: true,
      description: `must be a list of ${FORMATS.join(', ')} or both`,
    }),
    'in place of `HLS_FORMATS`',
  ),
  /** `HLS_SEGMENT_SEC` of the stream until it stops. */
  segmentSec: row(
    Type.Number({ ...SEGMENT_SEC, description: `must be a number ${range(SEGMENT_SEC)}` }),
    'in place of `HLS_SEGMENT_SEC`',
  ),
  /** `HLS_PART_MS` of the stream until it stops. */
  partMs: row(
    Type.Integer({ ...PART_MS, description: `must be a whole number ${range(PART_MS)}` }),
    'in place of `HLS_PART_MS`',
  ),
  /** `HLS_PLAYLIST_SEGMENTS` of the stream until it stops. */
  playlistSegments: row(
    Type.Integer({
      ...PLAYLIST_SEGMENTS,
      description: `must be a whole number ${range(PLAYLIST_SEGMENTS)}`,
    }),
    'in place of `HLS_PLAYLIST_SEGMENTS`',
  ),
}

/** Options for encoders, from their next connection on, and for viewers: each start replaces those that it gives. */
export const POLICY_OPTIONS = {
  /** `SRT_LATENCY_MS` for encoders of the stream that connect from now on. */
  latencyMs: row(
    Type.Integer({ ...LATENCY_MS, description: `must be a whole number ${range(LATENCY_MS)}` }),
    'in place of `SRT_LATENCY_MS`',
  ),
  /** Addresses and CIDR blocks from which encoders may connect from now on; default: any address. */
  allowFrom: row(
    Type.Array(Type.Refine(Type.String(), isAddressBlock), {
      minItems: 1,
      maxItems: MAX_ADDRESS_BLOCKS,
      description: `must be 1 to ${MAX_ADDRESS_BLOCKS} IP addresses or CIDR blocks`,
    }),
    'where encoders may connect from',
  ),
  /** Whether viewers need a playback token from now on; default: with `PLAYBACK_SECRET`, which `true` requires. */
  playbackToken: row(flag(), 'whether viewers need a playback token'),
  /** Whether the preferred encoder goes on air again `FAILBACK_SEC` after it has come back; default true. */
  failback: row(flag(), 'whether the preferred encoder goes on air again by itself'),
  /** File of `SLATE_DIR` that viewers see while no encoder sends; default: none, which `''` asks for. */
  slate: row(
    Type.String({ maxLength: 255, description: 'must be the name of a file in SLATE_DIR' }),
    'file of `SLATE_DIR` that viewers see while no encoder sends',
  ),
  /** Whether the stream is archived, from now until it stops; default: unless `ARCHIVE` is `request`. */
  archive: row(flag(), 'whether the stream is archived'),
  /** `HLS_DVR_SEC` of the stream, for the archive that begins next. */
  dvrSec: row(
    Type.Integer({ ...DVR_SEC, description: `must be a whole number ${range(DVR_SEC)}` }),
    'in place of `HLS_DVR_SEC`',
  ),
  /** Whether the slate is on air before the first encoder, and the stream runs until its last key expires; default false. */
  alwaysOn: row(flag(), 'whether the slate is on air before the first encoder'),
}

/** All options, as requests and records have them. */
export const STREAM_OPTIONS = { ...MEDIA_OPTIONS, ...POLICY_OPTIONS }

type Rows = Readonly<Record<string, Row<TSchema>>>

/** Options for its media that a stream has of its own. */
export type OwnMedia = ValuesOf<typeof MEDIA_OPTIONS>

/** Options for its encoders and viewers that a stream has of its own. */
export type OwnPolicy = ValuesOf<typeof POLICY_OPTIONS>

/** Options that a stream has of its own; absent ones are those of the service. */
export type OwnOptions = OwnMedia & OwnPolicy

type ValuesOf<Table extends Rows> = {
  readonly [Name in keyof Table]?: Declared<Table[Name]['schema']>
}

/** Fields of a request that gives options. */
export function requested<Table extends Rows>(table: Table) {
  return mapRows(table, ({ schema }) => Type.Optional(schema)) as {
    [Name in keyof Table]: TOptional<Table[Name]['schema']>
  }
}

/** Fields of a record that has options, which were checked when they were given. */
export function recorded<Table extends Rows>(table: Table) {
  return mapRows(table, ({ schema, recorded: description }) => {
    const { type, items } = schema as { type?: string; items?: TSchema }
    return Type.Optional(Type.Unsafe({ type, ...(items && { items }), description }))
  }) as { [Name in keyof Table]: TOptional<TUnsafe<Static<Table[Name]['schema']>>> }
}

/** @returns the options of `table` that `values` has, and nothing else */
export function given<Table extends Rows>(table: Table, values: ValuesOf<Table>): ValuesOf<Table> {
  const names = Object.keys(table).filter((name) => values[name] !== undefined)
  return Object.fromEntries(names.map((name) => [name, values[name]])) as ValuesOf<Table>
}

function mapRows(table: Rows, map: (row: Row<TSchema>) => TSchema): Record<string, TSchema> {
  return Object.fromEntries(Object.entries(table).map(([name, each]) => [name, map(each)]))
}

function row<Schema extends TSchema>(schema: Schema, text: string): Row<Schema> {
  return { schema, recorded: text }
}

function range({
  minimum,
  maximum,
}: {
  readonly minimum: number
  readonly maximum: number
}): string {
  return `from ${minimum} to ${maximum}`
}
