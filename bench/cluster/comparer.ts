/**
 * Worker that asks all edges for every file of a stream, and compares their answers.
 *
 * @module
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { segmentUris } from '../../test/support/viewer.ts'
import { answer, readTask } from '../support/worker.ts'

export interface ComparerTask {
  /** Of the stream at each edge, with a slash at the end. */
  readonly bases: readonly string[]
}

export interface ComparerAnswers {
  report(): ComparerReport
}

export interface ComparerReport {
  /** Answers that were there to be compared with an earlier one. */
  readonly compared: number
  /** Segments and parts among them. */
  readonly media: number
  /** Answers that differ from the first one of the same name and, for a playlist, the same ETag. */
  readonly different: readonly string[]
  /** Longest time between two versions of the playlist at an edge. */
  readonly longestStillMs: number
  /** Answers of playlists other than 200, by status; 0 stands for none. */
  readonly failures: Readonly<Record<number, number>>
  /** From the end of the last segment of an epoch to the start of the next one's, by EXT-X-PROGRAM-DATE-TIME, in seconds. */
  readonly holes: readonly number[]
  /** Media Sequence Numbers and Discontinuity Sequence Numbers that went back. */
  readonly stepsBack: number
}

const EVERY_MS = 100
const TIMEOUT_MS = 12_000
const PLAYLISTS = [
  'cmaf-video-1.m3u8',
  'master.m3u8',
  'cmaf-video-1.m3u8?_HLS_skip=YES',
  'playlist.m3u8',
]
/** Names kept to compare with: many times those of a window. */
const MAX_KNOWN = 20_000

const { bases } = (await readTask()) as ComparerTask
const known = new Map<string, string>()
const fetched = new Set<string>()
const different: string[] = []
const failures: Record<number, number> = {}
const [compared, media] = [{ count: 0 }, { count: 0 }]
let longestStillMs = 0
let stepsBack = 0

interface Edge {
  readonly base: string
  text: string
  changedMs: number
  first: number
}

const edges = bases.map((base): Edge => ({
  base,
  text: '',
  changedMs: performance.now(),
  first: 0,
}))

/** End of the latest segment with media, and the holes before it. */
const timeline = { epoch: '', endMs: 0, last: 0, holes: [] as number[] }

answer<ComparerAnswers>({
  report: () => ({
    ...{ compared: compared.count, media: media.count, different, failures, stepsBack },
    ...{ longestStillMs, holes: timeline.holes },
  }),
})

for (;;) {
  const texts = await Promise.all(edges.map(look))
  const names = new Set(
    texts.flatMap((text) => [
      ...segmentUris(text),
      ...Array.from(
        text.matchAll(/^#EXT-X-PART:.*URI="([^"]+)"(?!.*GAP=YES)/gm),
        ([, uri]) => uri!,
      ),
    ]),
  )
  for (const name of names) {
    if (fetched.has(name)) continue
    fetched.add(name)
    await Promise.all(edges.map(({ base }) => compare(base, name)))
  }
  await sleep(EVERY_MS)
}

/** @returns the media playlist, empty without one */
async function look(edge: Edge): Promise<string> {
  const [text] = await Promise.all(PLAYLISTS.map((name) => compare(edge.base, name)))
  const nowMs = performance.now()
  if (text !== undefined && text !== edge.text) {
    edge.text = text
    edge.changedMs = nowMs
    const first = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1] ?? 0)
    if (first < edge.first) stepsBack++
    edge.first = first
    if (edge === edges[0]) measureHoles(text, first)
  }
  longestStillMs = Math.max(longestStillMs, nowMs - edge.changedMs)
  return edge.text
}

async function compare(base: string, name: string): Promise<string | undefined> {
  const isPlaylist = name.includes('.m3u8')
  try {
    const reply = await fetch(base + name, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = Buffer.from(await reply.arrayBuffer())
    if (!reply.ok) {
      if (isPlaylist) failures[reply.status] = (failures[reply.status] ?? 0) + 1
      return undefined
    }
    const etag = reply.headers.get('etag')
    const what = `${etag} ${reply.headers.get('content-type')} ${createHash('sha256').update(body).digest('hex')}`
    const key = isPlaylist ? `${name} ${etag}` : name
    const before = known.get(key)
    if (before !== undefined) {
      compared.count++
      if (!isPlaylist) media.count++
      if (before !== what) different.push(`${key}: ${before} and ${what}`)
    } else {
      known.set(key, what)
      if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
    }
    return isPlaylist ? body.toString() : undefined
  } catch {
    if (isPlaylist) failures[0] = (failures[0] ?? 0) + 1
    return undefined
  }
}

/** Follows the segments with media that one edge lists. */
function measureHoles(text: string, first: number): void {
  let [number, date, seconds, isGap] = [first, NaN, NaN, false]
  for (const line of text.split('\n')) {
    if (line.startsWith('#EXTINF:')) seconds = Number.parseFloat(line.slice(8))
    else if (line.startsWith('#EXT-X-PROGRAM-DATE-TIME:')) date = Date.parse(line.slice(25))
    else if (line === '#EXT-X-GAP') isGap = true
    else if (line !== '' && !line.startsWith('#')) {
      const epoch = line.split('-', 1)[0]!
      if (!isGap && number > timeline.last && Number.isFinite(date)) {
        const isNext = timeline.epoch !== '' && epoch !== timeline.epoch
        if (isNext) timeline.holes.push((date - timeline.endMs) / 1000)
        Object.assign(timeline, { epoch, last: number, endMs: date + seconds * 1000 })
      }
      ;[number, date, isGap] = [number + 1, NaN, false]
    }
  }
}
