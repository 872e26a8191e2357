/**
 * Tags of RFC 8216bis 4.4: their attributes with types (4.2), and the protocol version that they need (8).
 *
 * @module
 */
import { findTag, type Tag } from './tag-reader.ts'

/** Kinds of tags: which playlists they may be in, and how often. */
export type TagKind = 'basic' | 'shared' | 'media' | 'segment' | 'metadata' | 'multivariant'

/** Types of attribute values (4.2); `choice` is a quoted string or an enumerated string. */
type AttributeType =
  'integer' | 'decimal' | 'signed' | 'string' | 'choice' | 'hex' | 'resolution' | readonly string[]

interface TagForm {
  readonly kind: TagKind
  /** Section of RFC 8216bis. */
  readonly section: string
  /** Whether a playlist may have more than one. */
  readonly repeats: boolean
  readonly required: readonly string[]
  readonly attributes: Readonly<Record<string, AttributeType>>
}

const YES = ['YES']
const YES_NO = ['YES', 'NO']
const METHODS = ['NONE', 'AES-128', 'SAMPLE-AES', 'SAMPLE-AES-CTR', 'AES-256-GCM']

const KEY = {
  METHOD: METHODS,
  URI: 'string',
  IV: 'hex',
  KEYFORMAT: 'string',
  KEYFORMATVERSIONS: 'string',
} as const

const VARIANT = {
  BANDWIDTH: 'integer',
  'AVERAGE-BANDWIDTH': 'integer',
  SCORE: 'decimal',
  CODECS: 'string',
  'SUPPLEMENTAL-CODECS': 'string',
  RESOLUTION: 'resolution',
  'HDCP-LEVEL': ['TYPE-0', 'TYPE-1', 'NONE'],
  'VIDEO-RANGE': ['SDR', 'HLG', 'PQ'],
  'STABLE-VARIANT-ID': 'string',
  VIDEO: 'string',
  'PATHWAY-ID': 'string',
} as const

function once(kind: TagKind, section: string, rest: Partial<TagForm> = {}): TagForm {
  return { kind, section, repeats: false, required: [], attributes: {}, ...rest }
}

function many(kind: TagKind, section: string, rest: Partial<TagForm> = {}): TagForm {
  return { ...once(kind, section, rest), repeats: true }
}

export const TAG_FORMS: ReadonlyMap<string, TagForm> = new Map(
  Object.entries({
    EXTM3U: once('basic', '4.4.1.1'),
    'EXT-X-VERSION': once('basic', '4.4.1.2'),
    'EXT-X-INDEPENDENT-SEGMENTS': once('shared', '4.4.2.1'),
    'EXT-X-START': once('shared', '4.4.2.2', {
      required: ['TIME-OFFSET'],
      attributes: { 'TIME-OFFSET': 'signed', PRECISE: YES_NO },
    }),
    'EXT-X-DEFINE': many('shared', '4.4.2.3', {
      attributes: { NAME: 'string', IMPORT: 'string', QUERYPARAM: 'string' },
    }),
    'EXT-X-TARGETDURATION': once('media', '4.4.3.1'),
    'EXT-X-MEDIA-SEQUENCE': once('media', '4.4.3.2'),
    'EXT-X-DISCONTINUITY-SEQUENCE': once('media', '4.4.3.3'),
    'EXT-X-ENDLIST': once('media', '4.4.3.4'),
    'EXT-X-PLAYLIST-TYPE': once('media', '4.4.3.5'),
    'EXT-X-I-FRAMES-ONLY': once('media', '4.4.3.6'),
    'EXT-X-PART-INF': once('media', '4.4.3.7', {
      required: ['PART-TARGET'],
      attributes: { 'PART-TARGET': 'decimal' },
    }),
    'EXT-X-SERVER-CONTROL': once('media', '4.4.3.8', {
      attributes: {
        'CAN-SKIP-UNTIL': 'decimal',
        'CAN-SKIP-DATERANGES': YES,
        'HOLD-BACK': 'decimal',
        'PART-HOLD-BACK': 'decimal',
        // Some servers write NO, which means the same as nothing.
        'CAN-BLOCK-RELOAD': YES_NO,
      },
    }),
    EXTINF: many('segment', '4.4.4.1'),
    'EXT-X-BYTERANGE': many('segment', '4.4.4.2'),
    'EXT-X-DISCONTINUITY': many('segment', '4.4.4.3'),
    'EXT-X-KEY': many('segment', '4.4.4.4', { required: ['METHOD'], attributes: KEY }),
    'EXT-X-MAP': many('segment', '4.4.4.5', {
      required: ['URI'],
      attributes: { URI: 'string', BYTERANGE: 'string' },
    }),
    'EXT-X-PROGRAM-DATE-TIME': many('segment', '4.4.4.6'),
    'EXT-X-GAP': many('segment', '4.4.4.7'),
    'EXT-X-BITRATE': many('segment', '4.4.4.8'),
    'EXT-X-PART': many('segment', '4.4.4.9', {
      required: ['URI', 'DURATION'],
      attributes: {
        URI: 'string',
        DURATION: 'decimal',
        INDEPENDENT: YES_NO,
        BYTERANGE: 'string',
        GAP: YES_NO,
      },
    }),
    'EXT-X-DATERANGE': many('metadata', '4.4.5.1', {
      required: ['ID'],
      attributes: {
        ID: 'string',
        CLASS: 'string',
        'START-DATE': 'string',
        'END-DATE': 'string',
        DURATION: 'decimal',
        'PLANNED-DURATION': 'decimal',
        'SCTE35-CMD': 'hex',
        'SCTE35-OUT': 'hex',
        'SCTE35-IN': 'hex',
        'END-ON-NEXT': YES,
      },
    }),
    'EXT-X-SKIP': once('metadata', '4.4.5.2', {
      required: ['SKIPPED-SEGMENTS'],
      attributes: { 'SKIPPED-SEGMENTS': 'integer' },
    }),
    'EXT-X-PRELOAD-HINT': many('metadata', '4.4.5.3', {
      required: ['TYPE', 'URI'],
      attributes: { URI: 'string', 'BYTERANGE-START': 'integer', 'BYTERANGE-LENGTH': 'integer' },
    }),
    'EXT-X-RENDITION-REPORT': many('metadata', '4.4.5.4', {
      required: ['URI'],
      attributes: { URI: 'string', 'LAST-MSN': 'integer', 'LAST-PART': 'integer' },
    }),
    'EXT-X-MEDIA': many('multivariant', '4.4.6.1', {
      required: ['TYPE', 'GROUP-ID', 'NAME'],
      attributes: {
        TYPE: ['AUDIO', 'VIDEO', 'SUBTITLES', 'CLOSED-CAPTIONS'],
        URI: 'string',
        'GROUP-ID': 'string',
        LANGUAGE: 'string',
        'ASSOC-LANGUAGE': 'string',
        NAME: 'string',
        DEFAULT: YES_NO,
        AUTOSELECT: YES_NO,
        FORCED: YES_NO,
        'INSTREAM-ID': 'string',
        'BIT-DEPTH': 'integer',
        'SAMPLE-RATE': 'integer',
        CHARACTERISTICS: 'string',
        CHANNELS: 'string',
      },
    }),
    'EXT-X-STREAM-INF': many('multivariant', '4.4.6.2', {
      required: ['BANDWIDTH'],
      attributes: {
        ...VARIANT,
        'FRAME-RATE': 'decimal',
        AUDIO: 'string',
        SUBTITLES: 'string',
        'CLOSED-CAPTIONS': 'choice',
      },
    }),
    'EXT-X-I-FRAME-STREAM-INF': many('multivariant', '4.4.6.3', {
      required: ['BANDWIDTH', 'URI'],
      attributes: { ...VARIANT, URI: 'string' },
    }),
    'EXT-X-SESSION-DATA': many('multivariant', '4.4.6.4', {
      required: ['DATA-ID'],
      attributes: { 'DATA-ID': 'string', VALUE: 'string', URI: 'string', LANGUAGE: 'string' },
    }),
    'EXT-X-SESSION-KEY': many('multivariant', '4.4.6.5', {
      required: ['METHOD', 'URI'],
      attributes: KEY,
    }),
    'EXT-X-CONTENT-STEERING': once('multivariant', '4.4.6.6', {
      required: ['SERVER-URI'],
      attributes: { 'SERVER-URI': 'string', 'PATHWAY-ID': 'string' },
    }),
  }),
)

const PATTERNS: Readonly<Record<Exclude<AttributeType, readonly string[]>, RegExp>> = {
  integer: /^\d{1,20}$/,
  decimal: /^(\d+\.?\d*|\.\d+)$/,
  signed: /^-?(\d+\.?\d*|\.\d+)$/,
  string: /^"[^"]*"$/,
  choice: /^("[^"]+"|NONE)$/,
  hex: /^0[xX][0-9A-F]+$/,
  resolution: /^\d+x\d+$/,
}

export function matchesType(value: string, type: AttributeType): boolean {
  return typeof type === 'string' ? PATTERNS[type].test(value) : type.includes(value)
}

export function describeType(type: AttributeType): string {
  if (typeof type !== 'string') return type.join(' or ')
  return {
    integer: 'a decimal integer',
    decimal: 'a decimal number',
    signed: 'a signed decimal number',
    string: 'a quoted string',
    choice: 'a quoted string or NONE',
    hex: 'a hexadecimal sequence of 0-9 and A-F behind 0x',
    resolution: 'width x height',
  }[type]
}

interface RequiredVersion {
  readonly version: number
  /** The first tag or attribute that needs it; undefined for version 1. */
  readonly reason: { readonly text: string; readonly line: number } | undefined
}

/** Smallest EXT-X-VERSION that a playlist needs (8). */
export function requiredVersion(playlist: { readonly tags: readonly Tag[] }): RequiredVersion {
  const hasIFramesOnly = findTag(playlist, 'EXT-X-I-FRAMES-ONLY') !== undefined
  let required: RequiredVersion = { version: 1, reason: undefined }
  for (const tag of playlist.tags) {
    const need = versionOf(tag, hasIFramesOnly)
    if (need === undefined || need[0] <= required.version) continue
    required = { version: need[0], reason: { text: need[1], line: tag.line } }
  }
  return required
}

function versionOf(
  { name, value, attributes }: Tag,
  hasIFramesOnly: boolean,
): readonly [version: number, reason: string] | undefined {
  const layout = [...attributes.keys()].find((attribute) => attribute.startsWith('REQ-'))
  if (layout !== undefined) return [12, layout]
  switch (name) {
    case 'EXTINF':
      return /^\d+\./.test(value) ? [3, 'a decimal EXTINF'] : undefined
    case 'EXT-X-BYTERANGE':
    case 'EXT-X-I-FRAMES-ONLY':
      return [4, `#${name}`]
    case 'EXT-X-MAP':
      return [hasIFramesOnly ? 5 : 6, `#${name}`]
    case 'EXT-X-KEY':
      if (attributes.has('KEYFORMAT') || attributes.has('KEYFORMATVERSIONS'))
        return [5, 'KEYFORMAT']
      if (attributes.get('METHOD') === 'SAMPLE-AES') return [5, 'METHOD=SAMPLE-AES']
      return attributes.has('IV') ? [2, 'IV'] : undefined
    case 'EXT-X-DEFINE':
      return attributes.has('QUERYPARAM') ? [11, 'QUERYPARAM'] : [8, `#${name}`]
    case 'EXT-X-SKIP':
      return attributes.has('RECENTLY-REMOVED-DATERANGES')
        ? [10, 'RECENTLY-REMOVED-DATERANGES']
        : [9, `#${name}`]
    case 'EXT-X-MEDIA':
      if (!attributes.has('INSTREAM-ID')) return undefined
      if (attributes.get('TYPE') !== 'CLOSED-CAPTIONS') return [13, 'INSTREAM-ID']
      return attributes.get('INSTREAM-ID')!.includes('SERVICE') ? [7, 'INSTREAM-ID'] : undefined
    default:
      return undefined
  }
}
