/**
 * What a flood did, in two tables: to the publishers, and to the listener.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { FloodResult } from './measure.ts'

const PUBLISHER_COLUMNS = [
  { title: 'publisher' },
  { title: 'sent' },
  { title: 'received' },
  { title: 'lost' },
  { title: 'dropped' },
]

export function formatFlood(result: FloodResult): string {
  const { attack, listener, rssBytes } = result
  const publishers = result.publishers.map(({ name, sent, packets, lost, dropped }) => [
    ...[name, sent, packets, lost, dropped],
  ])
  const perSec = (count: number) => Math.round(count / attack.elapsedSec)
  const figures = [
    ['inductions sent', attack.inductions],
    ['inductions sent a second', perSec(attack.inductions)],
    ['inductions read', listener.inductions],
    ['inductions answered', listener.inductions - listener.inductionsDropped],
    ['inductions dropped', listener.inductionsDropped],
    ['wrong cookies sent', attack.conclusions],
    ['wrong cookies sent a second', perSec(attack.conclusions)],
    ['badCookies', listener.badCookies],
    ['answers to the attacker', attack.answers],
    ['callers accepted', listener.accepted],
    ['kernel drops', result.kernelDrops],
    ['loop p99 ms', result.loopDelayP99Ms.toFixed(1)],
    ['RSS MB before', rssBytes.before / 1e6],
    ['RSS MB at most', rssBytes.highest / 1e6],
    ['RSS MB at end', rssBytes.atEnd / 1e6],
  ]
  return [
    formatTable(PUBLISHER_COLUMNS, publishers),
    formatTable([{ title: 'listener' }, { title: '' }], figures),
  ].join('\n\n')
}
