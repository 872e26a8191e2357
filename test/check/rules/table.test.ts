/** The work of the rules on hostile playlists, in reads of what was parsed. */
import t from 'tap'
import {
  parseMediaPlaylist,
  type ParsedPlaylist,
} from '../../../src/check/playlist/media-playlist.ts'
import {
  parseMultivariantPlaylist,
  type ParsedMultivariant,
} from '../../../src/check/playlist/multivariant-playlist.ts'
import { RULES } from '../../../src/check/rules/table.ts'
import { PLAYLIST_URL } from './fixture.ts'

const SIZE = 150

/** Text of a version, 0 or 1, with `count` of something. */
type Hostile = (count: number, version: number) => string

const HEAD = '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=1\n'
const repeat = (count: number, lineOf: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => lineOf(index)).join('')
const segment = (index: number) => `#EXTINF:2,\na-${index}.ts\n`
const part = (index: number) => `#EXT-X-PART:DURATION=1,URI="p-${index}.ts"\n`
const dateOf = (index: number) => new Date(Date.UTC(2026, 0, 1) + index * 2000).toISOString()
const dated = (index: number) => `#EXT-X-PROGRAM-DATE-TIME:${dateOf(index)}\n${segment(index)}`
const dateRange = (id: string, index: number, rest = '') =>
  `#EXT-X-DATERANGE:ID="${id}",START-DATE="${dateOf(index)}"${rest}\n`
const segmentsWith = (tagOf: (index: number) => string): Hostile => {
  return (count, version) => HEAD + repeat(count + version, (i) => tagOf(i) + segment(i))
}
const tagsBehindSegments = (tagOf: (index: number, version: number) => string): Hostile => {
  return (count, version) => HEAD + repeat(3, dated) + repeat(count, (i) => tagOf(i, version))
}

const HOSTILE_MEDIA: Readonly<Record<string, Hostile>> = {
  'segments alone': segmentsWith(() => ''),
  'segments with a part each': segmentsWith(part),
  'parts that are gone': (count, version) =>
    HEAD + repeat(count, (i) => (version === 0 ? part(i) : '') + segment(i)),
  'parts of one segment': (count, version) => HEAD + repeat(count + version, part),
  'dates that go back': segmentsWith((i) => `#EXT-X-PROGRAM-DATE-TIME:${dateOf(9000 - i)}\n`),
  discontinuities: segmentsWith(() => '#EXT-X-DISCONTINUITY\n'),
  keys: segmentsWith((i) => `#EXT-X-KEY:METHOD=AES-128,URI="k-${i}"\n`),
  maps: segmentsWith((i) => `#EXT-X-MAP:URI="m-${i}"\n`),
  'byte ranges': segmentsWith(() => '#EXT-X-BYTERANGE:5\n'),
  bitrates: segmentsWith((i) => `#EXT-X-BITRATE:${i}\n`),
  'tags of one segment': (count, version) =>
    HEAD + repeat(count, (i) => `#EXT-X-KEY:METHOD=AES-128,URI="k-${i}"\n`) + segment(version),
  'preload hints': tagsBehindSegments((i) => `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="h-${i}"\n`),
  'date ranges': tagsBehindSegments((i, version) => dateRange(`${i}`, i, `,X-A=${version}`)),
  'date ranges with one ID': tagsBehindSegments((i, version) =>
    dateRange('a', i, `,X-A=${version}`),
  ),
  'date ranges that are gone': tagsBehindSegments((i, version) =>
    version === 0 ? dateRange(`${i}`, i) : '',
  ),
  'date ranges with one ID that are gone': tagsBehindSegments((i, version) =>
    version === 0 ? dateRange('a', i) : '',
  ),
  'repeated heads': (count) => repeat(count, () => HEAD) + segment(0),
}

const rendition = (type: string, group: string, name: string) =>
  `#EXT-X-MEDIA:TYPE=${type},GROUP-ID="${group}",NAME="${name}",DEFAULT=YES,AUTOSELECT=YES\n`
const variant = (index: number, group: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=${index},AUDIO="${group}"\nv-${index}.m3u8\n`

const HOSTILE_MULTIVARIANT: Readonly<Record<string, Hostile>> = {
  'members of one group': (count) => repeat(count, (i) => rendition('AUDIO', 'a', `${i}`)),
  groups: (count) => repeat(count, (i) => rendition('AUDIO', `${i}`, 'a')),
  types: (count) => repeat(count, (i) => rendition(`T${i}`, 'a', 'a')),
  'many groups beside a group of many': (count) =>
    repeat(count, (i) => rendition('AUDIO', 'a', `${i}`)) +
    repeat(count, (i) => rendition('AUDIO', `${i}`, 'a')),
  'variants of groups that are not there': (count) =>
    repeat(count, (i) => rendition('AUDIO', `${i}`, 'a') + variant(i, `x${i}`)),
  'variants without URI': (count) => repeat(count, (i) => `#EXT-X-STREAM-INF:BANDWIDTH=${i}\n`),
}

/** Counts reads of properties, elements and entries below a value. */
class Reads {
  count = 0
  readonly #views = new WeakMap<object, object>()

  of<T>(value: T): T {
    if (typeof value !== 'object' || value === null) return value
    const known = this.#views.get(value)
    if (known !== undefined) return known as T
    const view = new Proxy<object>(value, {
      get: (target, name) => {
        this.count++
        const found: unknown = Reflect.get(target, name, target)
        if (typeof found !== 'function' || !(target instanceof Map)) return this.of(found)
        if (name !== 'get' && name !== 'has') this.count += target.size
        return found.bind(target) as unknown
      },
    })
    this.#views.set(value, view)
    return view as T
  }
}

/** Reads of each rule on playlists of a size. */
function readsOf(subjectsOf: (count: number) => Readonly<Record<string, object>>, count: number) {
  const subjects = subjectsOf(count)
  return new Map(
    RULES.flatMap((rule) => {
      const subject = subjects[rule.on]
      if (subject === undefined) return []
      const reads = new Reads()
      const check = rule.check as (subject: object) => unknown
      check(reads.of(subject))
      return [[rule.id, reads.count] as const]
    }),
  )
}

function isLinear(subjectsOf: (count: number) => Readonly<Record<string, object>>): string[] {
  const few = readsOf(subjectsOf, SIZE)
  const many = readsOf(subjectsOf, SIZE * 4)
  return [...many].flatMap(([id, count]) => {
    const before = few.get(id) ?? 0
    return count <= 4.5 * before + SIZE ? [] : [`${id}: ${before} reads, then ${count}`]
  })
}

const parseMedia = (text: string): ParsedPlaylist => parseMediaPlaylist(text, PLAYLIST_URL)
const parseMultivariant = (text: string): ParsedMultivariant =>
  parseMultivariantPlaylist(text, PLAYLIST_URL)

t.test('the work of each rule grows no faster than a media playlist', async (t) => {
  for (const [name, textOf] of Object.entries(HOSTILE_MEDIA)) {
    const slow = isLinear((count) => {
      const [before, after] = [0, 1].map((version) => parseMedia(textOf(count, version)))
      return {
        text: { playlist: after! },
        playlist: { playlist: after! },
        update: { before: before!, after: after! },
        older: { newest: after!, older: before! },
        delta: { merged: before!, full: after! },
      }
    })
    t.same(slow, [], name)
  }
})

t.test('the work of each rule grows no faster than a multivariant playlist', async (t) => {
  for (const [name, textOf] of Object.entries(HOSTILE_MULTIVARIANT)) {
    const slow = isLinear((count) => {
      const playlist = parseMultivariant(`#EXTM3U\n${textOf(count, 0)}`)
      return { text: { playlist }, multivariant: { playlist } }
    })
    t.same(slow, [], name)
  }
})
