/**
 * The selected stream: warnings, figures and graphs.
 *
 * @module
 */
import { byId, make, setDisabled, setText } from './dom.ts'
import { bitrate, count, duration, milliseconds, NONE, packets, stateOf } from './format.ts'
import { Graphs } from './graphs.ts'
import { createPreview, type Previews } from './previews.ts'
import type { Snapshot, StreamRow } from '../wire.ts'

export class Detail {
  readonly #section = byId('detail')
  readonly #graphs = new Graphs(byId('graphs'))
  readonly #previews: Previews
  readonly #canvas = createPreview()
  #row: StreamRow | undefined

  constructor(previews: Previews) {
    this.#previews = previews
    byId('preview').append(this.#canvas)
  }

  /** The stream that is shown. */
  get row(): StreamRow | undefined {
    return this.#row
  }

  open(row: StreamRow, snapshot: Snapshot): void {
    const isOther = row.id !== this.#row?.id
    this.#section.hidden = false
    document.body.classList.add('has-detail')
    this.update(row, snapshot)
    if (isOther) {
      setText(byId('detail-error'), '')
      this.#graphs.open(row.id)
      this.#previews.remove(this.#canvas)
      this.#previews.add(this.#canvas, row.id)
    }
    byId('detail-title').focus()
  }

  close(): void {
    this.#row = undefined
    this.#section.hidden = true
    document.body.classList.remove('has-detail')
    this.#graphs.close()
    this.#previews.remove(this.#canvas)
  }

  update(row: StreamRow, snapshot: Snapshot): void {
    const { timeMs, publicUrl = '' } = snapshot
    this.#row = row
    setText(byId('detail-title'), row.id)
    this.#canvas.hidden = !row.live
    const watch = byId('watch', HTMLAnchorElement)
    watch.href = `${publicUrl}/watch/${row.id}`
    watch.hidden = row.isProtected === true
    setDisabled(byId('kick'), row.encoder === undefined)
    setDisabled(byId('stop'), row.status === 'STOPPED')
    showWarnings(row)
    showFacts([...factsOf(row, timeMs), ...nodesOf(row, snapshot)])
    this.#graphs.add(row, timeMs)
  }
}

function showWarnings({ warnings }: StreamRow): void {
  const list = byId('warnings')
  const texts = warnings.map(({ code, message }) => `${code}: ${message}`)
  if (texts.join() === [...list.children].map(({ textContent }) => textContent).join()) return
  list.replaceChildren(...texts.map((textContent) => make('li', { textContent })))
  list.hidden = texts.length === 0
}

function factsOf(row: StreamRow, timeMs: number): [string, string][] {
  const { encoder, tracks, viewers, liveSinceMs } = row
  const facts: [string, string][] = [
    ['State', stateOf(row)],
    ['Live for', liveSinceMs === undefined ? NONE : duration(timeMs - liveSinceMs)],
    ['Viewers', count(viewers)],
    ['Tracks', tracks.join(', ') || NONE],
    ['Encoder', encoder?.remote ?? NONE],
  ]
  if (encoder === undefined) return facts
  return [
    ...facts,
    ['SRT library', encoder.version ?? NONE],
    ['Bitrate', bitrate(encoder.bitrateBps)],
    ['Round-trip time', milliseconds(encoder.rttMs)],
    ['SRT latency', milliseconds(encoder.latencyMs)],
    ['Packets lost', packets(encoder.packetsLost, encoder)],
    ['Packets dropped', packets(encoder.packetsDropped, encoder)],
  ]
}

/** Which nodes have the stream: its owner, in a cluster, and edges. */
function nodesOf(row: StreamRow, { nodes = [] }: Snapshot): [string, string][] {
  const { node, edges, edgeLagMs } = row
  const owner = nodes.find((each) => each.node === node)?.url ?? NONE
  const reading = `${count(edges ?? 0)}, ${milliseconds(edgeLagMs)} behind`
  return [
    ...(nodes.length === 0 ? [] : ([['Node', owner]] as [string, string][])),
    ...(edges === undefined ? [] : ([['Edges', reading]] as [string, string][])),
  ]
}

function showFacts(facts: readonly [string, string][]): void {
  const list = byId('facts')
  const names = [...list.querySelectorAll('dt')].map(({ textContent }) => textContent)
  if (names.join() !== facts.map(([name]) => name).join()) {
    list.replaceChildren(
      ...facts.map(([name]) => make('div', {}, make('dt', { textContent: name }), make('dd'))),
    )
  }
  const values = list.querySelectorAll('dd')
  facts.forEach(([, value], index) => setText(values[index]!, value))
}
