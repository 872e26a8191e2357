/**
 * Sources of the selected stream, if it has others than a main encoder, and the buttons that put encoders on air.
 *
 * @module
 */
import { byId, make, setDisabled, setText } from './dom.ts'
import { bitrate, milliseconds, packets } from './format.ts'
import { SOURCES } from './journal.ts'
import type { EncoderFigures, SourceFigures, SourceName, StreamRow } from './wire.ts'

const STATES: Readonly<Record<SourceFigures['state'], string>> = {
  ON_AIR: 'on air',
  READY: 'ready',
  CONNECTED: 'connected, no key frame yet',
  AWAY: 'away',
}

interface ItemElements {
  readonly item: HTMLElement
  readonly state: HTMLElement
  readonly figures: HTMLElement
  readonly button: HTMLElement
}

export class SourceList {
  readonly #list = byId('sources')
  readonly #items = new Map<SourceName, ItemElements>()

  /** @param onPress  called with the encoder that is to be on air */
  constructor(onPress: (source: SourceName) => void) {
    for (const [source, name] of Object.entries(SOURCES) as [SourceName, string][]) {
      const state = make('span', { className: 'source' })
      const figures = make('p', { className: 'quiet' })
      const button = make('button', { type: 'button', textContent: 'Put on air' })
      button.setAttribute('aria-label', `Put on air: ${name}`)
      button.hidden = source === 'slate'
      button.addEventListener('click', () => onPress(source))
      const item = make('li', {}, make('div', {}, make('b', { textContent: name }), state, figures))
      item.append(button)
      this.#list.append(item)
      this.#items.set(source, { item, state, figures, button })
    }
  }

  show({ sources = [] }: StreamRow): void {
    byId('source-section').hidden = sources.length === 0
    for (const [source, { item, state, figures, button }] of this.#items) {
      const found = sources.find((each) => each.source === source)
      item.hidden = found === undefined
      if (found === undefined) continue
      item.dataset['state'] = found.state
      setText(state, STATES[found.state])
      setText(figures, found.encoder === undefined ? '' : figuresOf(found.encoder))
      setDisabled(button, found.encoder === undefined || found.state === 'ON_AIR')
    }
  }
}

function figuresOf(encoder: EncoderFigures): string {
  const { remote, bitrateBps, rttMs, packetsLost, packetsDropped } = encoder
  return [
    remote,
    bitrate(bitrateBps),
    `RTT ${milliseconds(rttMs)}`,
    `lost ${packets(packetsLost, encoder)}`,
    `dropped ${packets(packetsDropped, encoder)}`,
  ].join(' · ')
}
