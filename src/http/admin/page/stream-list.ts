/**
 * The list of streams: rows are updated where they stand, so that focus and selection stay.
 *
 * @module
 */
import { byId, make, setText } from './dom.ts'
import { bitrate, count, milliseconds, NONE, packets, stateOf } from './format.ts'
import { createPreview, type Previews } from './previews.ts'
import type { StreamRow } from '../wire.ts'

interface RowElements {
  readonly row: HTMLTableRowElement
  readonly button: HTMLButtonElement
  readonly canvas: HTMLCanvasElement
  readonly cells: readonly HTMLElement[]
  /** Number of warnings, beside the state where their column has no room. */
  readonly warningCount: HTMLElement
}

const COLUMNS = ['state', 'wide', 'number', ...Array<string>(3).fill('number middle')]

export class StreamList {
  readonly #body = byId('rows')
  readonly #elements = new Map<string, RowElements>()
  readonly #previews: Previews
  readonly #onSelect: (id: string) => void

  constructor(previews: Previews, onSelect: (id: string) => void) {
    this.#previews = previews
    this.#onSelect = onSelect
  }

  /** @param rows  in the order of the list, which no row changes */
  show(rows: readonly StreamRow[], selectedId: string | undefined): void {
    const ids = new Set(rows.map(({ id }) => id))
    for (const [id, { row, canvas }] of this.#elements) {
      if (ids.has(id)) continue
      const hadFocus = row.contains(document.activeElement)
      this.#previews.remove(canvas)
      row.remove()
      this.#elements.delete(id)
      if (hadFocus) byId('list-title').focus()
    }
    let previous: Element | null = null
    for (const data of rows) {
      const elements = this.#elements.get(data.id) ?? this.#create(data.id)
      const { row } = elements
      if (!row.isConnected) {
        if (previous === null) this.#body.prepend(row)
        else previous.after(row)
      }
      previous = row
      update(elements, data, data.id === selectedId)
    }
  }

  clear(): void {
    this.show([], undefined)
  }

  focus(id: string): void {
    const button = this.#elements.get(id)?.button ?? byId('list-title')
    button.focus()
  }

  #create(id: string): RowElements {
    const button = make('button', { type: 'button', textContent: id, className: 'link' })
    button.addEventListener('click', () => this.#onSelect(id))
    const cells = [...COLUMNS, 'number middle', 'row-warnings'].map((className) =>
      make('td', { className }),
    )
    const state = make('span')
    const warningCount = make('span', { className: 'narrow' })
    cells[0]!.append(state, warningCount)
    const canvas = createPreview()
    this.#previews.add(canvas, id)
    const name = make('div', { className: 'name' }, canvas, button)
    const row = make('tr', {}, make('th', { scope: 'row' }, name), ...cells)
    const elements = { row, button, canvas, cells: [state, ...cells.slice(1)], warningCount }
    this.#elements.set(id, elements)
    return elements
  }
}

function update(
  { row, button, canvas, cells, warningCount }: RowElements,
  data: StreamRow,
  isSelected: boolean,
): void {
  const { encoder, viewers, warnings } = data
  const texts = [
    stateOf(data),
    encoder?.remote ?? NONE,
    bitrate(encoder?.bitrateBps),
    milliseconds(encoder?.rttMs),
    encoder ? packets(encoder.packetsLost, encoder) : NONE,
    encoder ? packets(encoder.packetsDropped, encoder) : NONE,
    count(viewers),
    warnings.map(({ code }) => code).join(', ') || NONE,
  ]
  texts.forEach((text, index) => setText(cells[index]!, text))
  setText(warningCount, warningsIn(warnings.length))
  canvas.hidden = !data.live
  row.dataset['state'] = data.live ? 'LIVE' : data.status
  row.classList.toggle('warned', warnings.length > 0)
  row.classList.toggle('selected', isSelected)
  const expanded = String(isSelected)
  if (button.getAttribute('aria-expanded') !== expanded) {
    button.setAttribute('aria-expanded', expanded)
    button.setAttribute('aria-controls', 'detail')
  }
}

function warningsIn(number: number): string {
  if (number === 0) return ''
  return number === 1 ? ' 1 warning' : ` ${number} warnings`
}
