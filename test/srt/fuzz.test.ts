import t from 'tap'
import { deriveKey } from '../../src/srt/crypto/key-encryption.ts'
import { fuzz } from './fuzz.ts'

t.test(
  'listener and caller survive arbitrary datagrams in any order, without exceptions or retained state',
  async (t) => {
    const kek = await deriveKey('0123456789', Buffer.alloc(16, 7), 16)
    let accepted = 0
    for (let seed = 1; seed <= 40; seed++) {
      const { violations, stats } = fuzz(seed, 3000, kek)
      t.strictSame(violations, [], `seed ${seed}`)
      accepted += stats.accepted
    }
    // A seed with which a sink got a gap after its end.
    t.strictSame(fuzz(1355, 20_000, kek).violations, [], 'a seed that failed')
    t.ok(accepted > 200, `${accepted} connections stood`)
  },
)
