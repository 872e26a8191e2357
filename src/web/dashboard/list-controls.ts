/**
 * What chooses the part of the list: search, filters with their counts, order, pages.
 *
 * @module
 */
import { byId, make, onPress, setDisabled, setText } from './dom.ts'
import type { View } from './feed.ts'
import { count, STATES } from './format.ts'
import type { ListFilter, Snapshot } from './wire.ts'

type ListView = Omit<View, 'stream'>

/** Time without another letter after which a search begins. */
const TYPING_MS = 250

const FILTERS: readonly (readonly [ListFilter | '', string])[] = [
  ['', 'All'],
  ...(Object.entries(STATES) as [ListFilter, string][]),
  ['WARNED', 'Warnings'],
]

/** Columns that begin with their lowest value; figures begin with the highest. */
const ASCENDING = new Set(['state', 'id', 'encoder'])

export class ListControls {
  readonly #search = byId('search', HTMLInputElement)
  readonly #chips = new Map<ListFilter | '', { button: HTMLElement; number: HTMLElement }>()
  readonly #onChange: () => void
  #view: ListView = { filter: '', search: '', sort: 'state', order: 'ascending', page: '' }
  #page = 0

  /** @param onChange  called when there is another view */
  constructor(onChange: () => void) {
    this.#onChange = onChange
    for (const [filter, name] of FILTERS) {
      const number = make('b')
      const button = make('button', { type: 'button' }, `${name} `, number)
      button.addEventListener('click', () => this.#change({ filter }))
      byId('filters').append(button)
      this.#chips.set(filter, { button, number })
    }
    for (const button of document.querySelectorAll<HTMLElement>('[data-sort]')) {
      button.addEventListener('click', () => this.#sortBy(button.dataset['sort']!))
    }
    let timer = 0
    this.#search.addEventListener('input', () => {
      clearTimeout(timer)
      timer = window.setTimeout(
        () => this.#change({ search: this.#search.value.trim() }),
        TYPING_MS,
      )
    })
    onPress('previous-page', () => this.#turnTo(this.#page - 1))
    onPress('next-page', () => this.#turnTo(this.#page + 1))
    this.#mark()
  }

  get view(): ListView {
    return this.#view
  }

  show({ rows, page, first, matches, counts, isCut }: Snapshot): void {
    for (const [filter, { button, number }] of this.#chips) {
      const value = counts[filter === '' ? 'all' : filter]
      setText(number, count(value))
      button.classList.toggle('none', value === 0)
    }
    const isAll = this.#view.search === '' && this.#view.filter === ''
    setText(
      byId('empty'),
      isAll ? 'No streams. Start one, and publish to its SRT URL.' : 'No stream matches.',
    )
    byId('empty').hidden = matches > 0
    const last = first + rows.length
    this.#page = page
    const range = `${count(first + 1)} to ${count(last)} of ${count(matches)}`
    setText(byId('range'), isCut ? `${range}; there are more, which only the API lists` : range)
    byId('pages').hidden = matches === rows.length && isCut !== true
    setDisabled(byId('previous-page'), first === 0)
    setDisabled(byId('next-page'), last === matches)
  }

  #sortBy(sort: string): void {
    const isReversed = sort === this.#view.sort
    const isUp = isReversed ? this.#view.order === 'descending' : ASCENDING.has(sort)
    this.#change({ sort, order: isUp ? 'ascending' : 'descending' })
  }

  #turnTo(page: number): void {
    this.#change({ page: String(page) })
    byId('list-title').focus()
  }

  #change(part: Partial<ListView>): void {
    this.#view = { ...this.#view, page: '', ...part }
    this.#mark()
    this.#onChange()
  }

  #mark(): void {
    const { filter, sort, order } = this.#view
    for (const [each, { button }] of this.#chips) {
      button.setAttribute('aria-pressed', String(each === filter))
    }
    for (const button of document.querySelectorAll<HTMLElement>('[data-sort]')) {
      const isSorted = button.dataset['sort'] === sort
      button.parentElement!.ariaSort = isSorted ? order : null
    }
  }
}
