import t from 'tap'
import { ActiveWarnings } from '../../src/diagnosis/active-warnings.ts'
import { ShortageWatch, type PlaylistFigures } from '../../src/diagnosis/shortage-watch.ts'

const SEC = 1_000_000

const PLENTY: PlaylistFigures = {
  ...{ listedSegments: 6, wantedSegments: 6, cutSegments: 100, releasedEarly: 10, gaps: 1 },
  short: true,
  advisedBytes: 1789 * 1024 * 1024,
}

function setUp() {
  const watch = new ShortageWatch()
  const warnings = new ActiveWarnings(() => undefined)
  let nowUs = 0
  return (changes: Partial<PlaylistFigures>, sec = 1) => {
    nowUs += sec * SEC
    const shortage = watch.observe({ ...PLENTY, ...changes })
    warnings.observe([{ code: 'CACHE_TOO_SMALL', ...shortage }], nowUs)
    return warnings.list[0]?.message
  }
}

t.test('does not warn while the playlist is as long as it can be', async (t) => {
  const observe = setUp()
  t.equal(observe({}), undefined, 'an earlier shortage does not count')
  t.equal(observe({ listedSegments: 4, cutSegments: 4 }), undefined)
})

t.test('CACHE_TOO_SMALL gives the figures since the shortage began', async (t) => {
  const observe = setUp()
  observe({})
  t.equal(
    observe({ listedSegments: 4 }),
    'Memory is short: 4 of 6 segments listed, 0 released early, 0 gaps. Viewers can rewind less. Set CACHE_MAX_MIB to 1789.',
  )
  t.match(
    observe({ listedSegments: 3, releasedEarly: 22 }),
    /: 3 of 6 segments listed, 12 released early, 0 gaps\. Slow viewers miss segments\. /,
  )
  const worst = observe({ listedSegments: 2, releasedEarly: 1_234_567, gaps: 1_234_567 })!
  t.match(worst, /: 2 of 6 segments .* 1\.23M released early, 1\.23M gaps\. Viewers see holes\. /)
})

t.test('CACHE_TOO_SMALL ends 30 s after the shortage, and counts anew', async (t) => {
  const observe = setUp()
  observe({})
  t.ok(observe({ releasedEarly: 11 }), 'also where the window is whole')
  t.match(observe({ releasedEarly: 11 }, 29), /: 6 of 6 segments listed, 1 released early/)
  t.match(observe({ releasedEarly: 12 }, 29), / 2 released early/)
  t.equal(observe({ releasedEarly: 12 }, 30), undefined)
  t.match(observe({ releasedEarly: 12, listedSegments: 3 }), /: 3 of 6 segments listed, 0 released/)
})
