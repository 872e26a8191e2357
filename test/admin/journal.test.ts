import t from 'tap'
import { Journal } from '../../src/admin/journal.ts'

function createJournal() {
  let nowMs = 1000
  return new Journal({ wallMs: () => nowMs++ })
}

const EVENT = { id: 'a', type: 'stream.live' }

t.test('events are newest first, bounded, and repeated ones are one', async (t) => {
  const journal = createJournal()
  for (let each = 0; each < 60; each++) journal.note('studio', 'warning', `number ${each}`)
  for (let each = 0; each < 3; each++) journal.note('studio', 'rejected', 'expired')
  const { events } = journal.read('studio')
  t.equal(events.length, 50)
  t.strictSame(events[0], { timeMs: 1062, type: 'rejected', detail: 'expired', times: 3 })
  t.match(events[1], { detail: 'number 59' })
})

t.test('the streams that changed last keep their events, as long as they exist', async (t) => {
  const journal = createJournal()
  for (let each = 0; each < 2001; each++) journal.note(`s${each}`, 'started')
  t.strictSame(journal.read('s0').events, [])
  t.equal(journal.read('s2000').events.length, 1)
  journal.retain((id) => id === 's1999')
  t.equal(journal.read('s1999').events.length, 1)
  t.strictSame(journal.read('s2000').events, [])
})

t.test('a delivery has its latest answer, and nothing of the URL but its origin', async (t) => {
  const journal = createJournal()
  const url = 'https://user:secret@hooks.example/private?token=secret'
  const failed = { url, event: EVENT, outcome: 'retried', failure: 'answered 500' } as const
  journal.noteDelivery('studio', { ...failed, attempts: 1, status: 500 })
  journal.noteDelivery('studio', { ...failed, attempts: 2, status: 500 })
  journal.noteDelivery('studio', {
    url,
    event: EVENT,
    outcome: 'delivered',
    attempts: 3,
    status: 200,
  })
  const { events, webhooks } = journal.read('studio')
  t.match(webhooks, [{ receiver: 'https://hooks.example', attempts: 3, status: 200 }])
  t.match(events, [{ type: 'webhook-failed', detail: /^stream\.live to .*: answered 500$/ }])
  t.equal(events.length, 1, 'the first failure alone')
  t.notMatch(JSON.stringify({ events, webhooks }), /secret|private|token/)
})
