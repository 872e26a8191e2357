/**
 * Results of the players bench as a table.
 *
 * @module
 */
import { formatTable } from '../support/table.ts'
import type { PlayersResult } from './measure.ts'

const COLUMNS = [
  { title: 'setup' },
  { title: 'player' },
  { title: 'start s', decimals: 1 },
  { title: 'still s, first 3 s', decimals: 1 },
  { title: 'still s, later', decimals: 1 },
  { title: 'encoder away s', decimals: 1 },
  { title: 'skipped s', decimals: 1 },
  { title: 'lines' },
  { title: 'errors' },
]

/** Time after the first frame in which players may still look for their place. */
const BEGIN_SEC = 3

export function formatPlayers(results: readonly PlayersResult[]): string {
  const rows = results.map(({ setup, player, watched, errors, awaySec }) => {
    const { standstills } = watched
    const sum = (isCounted: (atSec: number) => boolean) =>
      standstills.reduce((total, { atSec, sec }) => total + (isCounted(atSec) ? sec : 0), 0)
    return [
      setup,
      player,
      watched.startSec ?? NaN,
      sum((atSec) => atSec < BEGIN_SEC),
      sum((atSec) => atSec >= BEGIN_SEC),
      awaySec,
      watched.skippedSec,
      watched.height,
      errors.length,
    ]
  })
  const messages = results.flatMap(({ setup, player, errors, watched }) => [
    ...errors.map((message) => `${setup}, ${player}: ${message}`),
    ...watched.standstills.map(
      ({ atSec, sec }) =>
        `${setup}, ${player}: still for ${sec.toFixed(2)} s at ${atSec.toFixed(1)} s`,
    ),
  ])
  return [formatTable(COLUMNS, rows), ...(messages.length > 0 ? ['', ...messages] : [])].join('\n')
}
