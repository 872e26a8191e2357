/**
 * The selected stream: its preview, warnings, figures and graphs.
 *
 * @module
 */
import { call } from './calls.ts'
import { StreamCheck } from './check.ts'
import { drawQrCode } from './dialogs.ts'
import { byId, make, onPress, setDisabled, setName, setText, showFigures } from './dom.ts'
import {
  bitrate,
  count,
  duration,
  isPlaying,
  milliseconds,
  NONE,
  packets,
  sourceOf,
  stateOf,
  withShare,
} from './format.ts'
import { Graphs } from './graphs.ts'
import { StreamJournal } from './journal.ts'
import { createPreview, type Previews } from './previews.ts'
import { SourceList } from './source-list.ts'
import type {
  LineFigures,
  PlayQrCodes,
  PushFigures,
  Snapshot,
  SourceName,
  StreamRow,
} from './wire.ts'

export class Detail {
  readonly #section = byId('detail')
  readonly #graphs = new Graphs(byId('graphs'))
  readonly #previews: Previews
  readonly #canvas = createPreview()
  readonly #journal = new StreamJournal()
  readonly #check = new StreamCheck()
  readonly #sources = new SourceList((source) => void this.#putOnAir(source))
  #row: StreamRow | undefined
  /** Latest possible time of the previewed frame, in milliseconds since 1970. */
  #pictureMs: number | undefined

  constructor(previews: Previews) {
    this.#previews = previews
    byId('preview').prepend(this.#canvas)
    onPress('check', () => void this.#check.start(this.#row?.id ?? ''))
    for (const name of ['master', 'playlist'] as const) {
      onPress(`${name}-qr-code`, () => void this.#toggleQrCode(name))
    }
  }

  /** The stream that is shown. */
  get row(): StreamRow | undefined {
    return this.#row
  }

  open(row: StreamRow, snapshot: Snapshot): void {
    const isOther = row.id !== this.#row?.id
    this.#section.hidden = false
    document.body.classList.add('has-detail')
    if (isOther) {
      this.#journal.open(row.id)
      this.#check.reset()
      this.#hideQrCode()
      this.#pictureMs = undefined
      this.#previews.remove(this.#canvas)
      this.#previews.add(this.#canvas, row.id)
    }
    this.update(row, snapshot)
    if (isOther) {
      setText(byId('detail-error'), '')
      this.#graphs.open(row.id)
    }
    byId('detail-title').focus()
  }

  close(): void {
    this.#row = undefined
    this.#section.hidden = true
    document.body.classList.remove('has-detail')
    this.#graphs.close()
    this.#journal.close()
    this.#check.reset()
    this.#previews.remove(this.#canvas)
  }

  update(row: StreamRow, snapshot: Snapshot): void {
    const { timeMs, publicUrl = '' } = snapshot
    this.#row = row
    setName(byId('detail-title'), row.id)
    const watch = byId('watch', HTMLAnchorElement)
    watch.href = `${publicUrl}/watch/${row.id}`
    watch.hidden = row.isProtected === true
    setDisabled(byId('kick'), row.encoder === undefined)
    setDisabled(byId('stop'), row.status === 'STOPPED')
    byId('slate-notice').hidden = row.onAir !== 'slate'
    showWarnings(row)
    showFigures(byId('facts'), [...factsOf(row, timeMs), ...nodesOf(row, snapshot)])
    showFigures(byId('peers'), peersOf(row))
    this.#sources.show(row)
    this.#graphs.add(row, timeMs)
    this.#journal.refresh(timeMs)
    this.#showPicture(row, timeMs)
  }

  /** Shows the newest picture with its age; while nothing arrives, the last one, dimmed. */
  #showPicture(row: StreamRow, timeMs: number): void {
    const isNow = isPlaying(row)
    this.#previews.keepLast(this.#canvas, !isNow)
    const drawnMs = this.#previews.drawnMs(this.#canvas)
    const { interruptedMs } = this.#journal
    if (isNow) this.#pictureMs = drawnMs
    else if (interruptedMs !== undefined && drawnMs !== undefined)
      this.#pictureMs = Math.min(drawnMs, interruptedMs)
    byId('preview').hidden = !isNow && row.status !== 'INTERRUPTED' && drawnMs === undefined
    this.#canvas.hidden = false
    this.#canvas.classList.toggle('past', !isNow)
    const age = this.#pictureMs === undefined ? '' : duration(timeMs - this.#pictureMs)
    setText(byId('picture-age'), age && `${isNow ? 'Picture' : 'Last picture'}, ${age} old`)
  }

  async #putOnAir(source: SourceName): Promise<void> {
    const error = byId('detail-error')
    setText(error, '')
    const body = { stream_id: this.#row?.id, source }
    await call('streams/switch-source', body).catch((refusal: Error) =>
      setText(error, refusal.message),
    )
  }

  async #toggleQrCode(name: keyof PlayQrCodes): Promise<void> {
    const id = this.#row?.id
    const isShown = byId(`${name}-qr-code`).getAttribute('aria-expanded') === 'true'
    this.#hideQrCode()
    if (isShown) return
    const codes = await call<PlayQrCodes>(`streams/${id}/qr-code`).catch(() => undefined)
    if (codes === undefined || id !== this.#row?.id) return
    byId(`${name}-qr-code`).setAttribute('aria-expanded', 'true')
    byId('play-qr-code').setAttribute('aria-label', `QR code of the ${name} URL`)
    drawQrCode('play-qr-code', codes[name])
  }

  #hideQrCode(): void {
    for (const name of ['master', 'playlist']) {
      byId(`${name}-qr-code`).setAttribute('aria-expanded', 'false')
    }
    drawQrCode('play-qr-code', undefined)
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
  const { encoder, viewers, liveSinceMs } = row
  const facts: [string, string][] = [
    ['State', `${stateOf(row)} ${sourceOf(row)}`.trim()],
    ['Live for', liveSinceMs === undefined ? NONE : duration(timeMs - liveSinceMs)],
    ['Viewers', count(viewers)],
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
    ['Retransmitted', withShare(encoder.packetsRetransmitted, encoder.packetsReceived)],
    ['Packets dropped', packets(encoder.packetsDropped, encoder)],
  ]
}

/** Others that the stream comes from and goes to over SRT, a line each. */
function peersOf({ encoder, pull, pushes = [], readers }: StreamRow): [string, string][] {
  const peers: [string, string][] = []
  if (pull !== undefined) peers.push(['Pulled from', pull])
  for (const line of encoder?.lines ?? []) peers.push([`Line ${line.line}`, textOf(line)])
  if (readers) peers.push(['SRT readers', `${count(readers.count)} · ${sentInWords(readers)}`])
  for (const [index, { peer, ...sent }] of pushes.entries()) {
    const figures = sent.bitrateBps === undefined ? '' : ` · ${sentInWords(sent)}`
    peers.push([`Sent to ${index + 1}`, peer + figures])
  }
  return peers
}

function textOf({ remote, bitrateBps, rttMs, packetsLost }: LineFigures): string {
  return [
    remote,
    bitrate(bitrateBps),
    ...(rttMs === undefined ? [] : [`RTT ${milliseconds(rttMs)}`]),
    ...(packetsLost === undefined ? [] : [`lost ${count(packetsLost)}`]),
  ].join(' · ')
}

function sentInWords({ bitrateBps, packetsDropped = 0 }: Omit<PushFigures, 'peer'>): string {
  return bitrate(bitrateBps) + (packetsDropped === 0 ? '' : ` · dropped ${count(packetsDropped)}`)
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
