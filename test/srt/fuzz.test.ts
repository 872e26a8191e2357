import t from 'tap'
import { deriveKey } from '../../src/srt/crypto/key-encryption.ts'
import { fuzz } from './fuzz.ts'
import { FIRST_SEED, rounds } from '../support/soak.ts'

t.test(
  'listener and caller survive arbitrary datagrams in any order, without exceptions or retained state',
  async (t) => {
    const kek = await deriveKey('0123456789', Buffer.alloc(16, 7), 16)
    let accepted = 0
    const seeds = rounds(40, 2000)
    for (let seed = FIRST_SEED; seed < FIRST_SEED + seeds; seed++) {
      const { violations, stats } = fuzz(seed, 3000, kek)
      t.strictSame(violations, [], `seed ${seed}`)
      accepted += stats.accepted
    }
    // A seed with which a sink got a gap after its end.
    t.strictSame(fuzz(1355, 20_000, kek).violations, [], 'a seed that failed')
    t.ok(accepted > 5 * seeds, `${accepted} connections stood`)
  },
)
