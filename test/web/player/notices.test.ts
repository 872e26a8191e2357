import t from 'tap'
import { formatTime, NOTICES, timesOf } from '../../../src/web/player/notices.ts'

const SINCE_MS = Date.parse('2026-03-01T12:00:00Z')
const since = new Date(SINCE_MS).toISOString()
const SINCE = `Since ${formatTime(SINCE_MS)}`

t.test('a notice counts up from its time, or down to the end, for less than an hour', async (t) => {
  const soFar = (sec: number) => timesOf(NOTICES.STREAMING, { since }, SINCE_MS + sec * 1000)
  t.equal(soFar(-2), `${SINCE}, 0:00 so far`, 'clocks differ')
  t.equal(soFar(6), `${SINCE}, 0:06 so far`)
  t.equal(soFar(3599), `${SINCE}, 59:59 so far`)
  t.equal(soFar(3600), SINCE)

  const left = (sec: number) => {
    const end = new Date(SINCE_MS + sec * 1000).toISOString()
    return timesOf(NOTICES.INTERRUPTED, { since, stops_at: end }, SINCE_MS)
  }
  t.equal(left(120), `${SINCE}. If it stays away, it ends in 2:00.`)
  t.equal(left(365 * 24 * 3600), SINCE)
  t.equal(timesOf(NOTICES.INTERRUPTED, { since }, SINCE_MS), SINCE)
})

t.test('a notice without a time says none', async (t) => {
  t.equal(timesOf(NOTICES.LIVE, { since }, SINCE_MS), '')
  t.equal(timesOf(NOTICES.READY, {}, SINCE_MS), '')
})
