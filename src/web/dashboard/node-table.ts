/**
 * Ingest nodes of the cluster.
 *
 * @module
 */
import { byId, make } from './dom.ts'
import type { NodeRow } from './wire.ts'

export class NodeTable {
  readonly #section = byId('nodes')
  readonly #body = byId('node-rows')
  /** What is shown. */
  #shown = ''

  /** @param nodes  empty without a cluster */
  show(nodes: readonly NodeRow[]): void {
    const next = JSON.stringify(nodes)
    if (next === this.#shown) return
    this.#shown = next
    this.#section.hidden = nodes.length === 0
    this.#body.replaceChildren(...nodes.map(rowOf))
  }
}

function rowOf({ url, role, live, streams }: NodeRow): HTMLTableRowElement {
  return make(
    'tr',
    {},
    make('th', { scope: 'row', textContent: url }),
    make('td', { textContent: live ? role : `${role}, gone` }),
    make('td', { className: 'number', textContent: String(streams) }),
  )
}
