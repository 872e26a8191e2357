/**
 * Rows of the list. They are updated where they stand, and do not move under the pointer or the focus.
 *
 * @module
 */
import { byId, make, setName, setText } from './dom.ts'
import {
  bitrate,
  count,
  isPlaying,
  milliseconds,
  NONE,
  packets,
  sourceOf,
  stateOf,
} from './format.ts'
import { createPreview, type Previews } from './previews.ts'
import type { StreamRow } from './wire.ts'

interface RowElements {
  readonly row: HTMLTableRowElement
  readonly button: HTMLButtonElement
  readonly canvas: HTMLCanvasElement
  readonly cells: readonly HTMLElement[]
  /** What is on air instead of the main encoder. */
  readonly source: HTMLElement
  /** Number of warnings, beside the state where their column has no room. */
  readonly warningCount: HTMLElement
}

const COLUMNS = ['state', 'wide', 'number', ...Array<string>(3).fill('number middle')]

/** Matches the rows while somebody is about to press one. */
const HELD = matchMedia('(hover: hover)').matches ? ':hover, :focus-within' : ':focus-within'

export class StreamList {
  readonly #body = byId('rows')
  readonly #elements = new Map<string, RowElements>()
  readonly #previews: Previews
  readonly #onSelect: (id: string) => void

  constructor(previews: Previews, onSelect: (id: string) => void) {
    this.#previews = previews
    this.#onSelect = onSelect
  }

  /** @param rows  in the order of the list */
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
    const isHeld = this.#body.matches(HELD)
    let previous: HTMLTableRowElement | null = null
    for (const data of rows) {
      const elements = this.#elements.get(data.id) ?? this.#create(data.id)
      const { row } = elements
      const place: Element | null =
        previous === null ? this.#body.firstElementChild : previous.nextElementSibling
      if (!row.isConnected || (row !== place && !isHeld)) {
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
    const button = make('button', { type: 'button', className: 'link' })
    setName(button, id)
    button.addEventListener('click', () => this.#onSelect(id))
    const cells = [...COLUMNS, 'number middle', 'row-warnings'].map((className) =>
      make('td', { className, role: 'cell' }),
    )
    const state = make('span')
    const warningCount = make('span', { className: 'narrow' })
    const source = make('span', { className: 'source' })
    cells[0]!.append(state, source, warningCount)
    const canvas = createPreview()
    this.#previews.add(canvas, id)
    const name = make('div', { className: 'name' }, canvas, button)
    const head = make('th', { scope: 'row', role: 'rowheader' }, name)
    const row = make('tr', { role: 'row' }, head, ...cells)
    const shown = [state, ...cells.slice(1)]
    const elements = { row, button, canvas, cells: shown, source, warningCount }
    this.#elements.set(id, elements)
    return elements
  }
}

function update(
  { row, button, canvas, cells, source, warningCount }: RowElements,
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
  ]
  texts.forEach((text, index) => setText(cells[index]!, text))
  setText(cells[texts.length]!, warnings.map(({ code }) => code).join(', ') || NONE)
  setText(source, sourceOf(data))
  setText(warningCount, warningsIn(warnings.length))
  canvas.hidden = !isPlaying(data)
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
