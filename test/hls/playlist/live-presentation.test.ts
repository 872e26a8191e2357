import t, { type Test } from 'tap'
import { LivePresentation } from '../../../src/hls/playlist/live-presentation.ts'
import type { CaptionsPolicy } from '../../../src/hls/playlist/multivariant.ts'
import { segmentUri, type Format, type RenditionName } from '../../../src/hls/file-names.ts'
import { SegmentCache } from '../../../src/hls/store/segment-cache.ts'
import { createSegment, type Segment } from '../../../src/hls/store/segment.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { parseM3u8 } from '../../support/m3u8.ts'
import { StreamJudge } from '../../support/stream-judge.ts'
import { AUDIO, VIDEO } from '../source.ts'

const WALL_MS = Date.UTC(2026, 0, 1)

const ENGLISH: Track = { ...AUDIO, language: 'eng' }
const FRENCH: Track = { ...AUDIO, language: 'fre' }
const DOLBY: Track = {
  ...{ ...AUDIO, streamType: 0x81, codec: 'ac3', language: 'eng' },
  parameters: { codecString: 'ac-3', sampleRate: 48000, channels: 6 },
}

/** Segment of 2 s and 100,000 bit/s after the previous one, unless `changes` say otherwise. */
function segment(
  mediaSequence: number,
  changes: Partial<Omit<Segment, 'bytes' | 'sizeBytes'>> = {},
): Segment {
  const { rendition = 'main' } = changes
  return createSegment({
    epoch: 'e',
    mediaSequence,
    rendition,
    uri: segmentUri('e', rendition, mediaSequence),
    chunks: [Buffer.alloc(25_000)],
    durationSec: 2,
    startTicks: mediaSequence * 180_000,
    endTicks: (mediaSequence + 1) * 180_000,
    programDateTimeMs: WALL_MS + mediaSequence * 2000,
    discontinuity: false,
    discontinuitySequence: 0,
    independent: true,
    startsWithKeyFrame: true,
    tracks: [VIDEO, ENGLISH],
    parts: [],
    nextDateTimeMs: WALL_MS + (mediaSequence + 1) * 2000,
    videoFrames: 60,
    ...changes,
  })
}

interface SetUp {
  readonly maxBytes?: number
  readonly playlistSegments?: number
  readonly captions?: CaptionsPolicy
  readonly formats?: readonly Format[]
}

function setUp(t: Test, { maxBytes = 1e9, playlistSegments = 4, ...options }: SetUp = {}) {
  const cache = new SegmentCache({ maxBytes })
  const presentation = new LivePresentation({ cache, epoch: 'e', playlistSegments, ...options })
  presentation.setTarget(2)
  const judge = new StreamJudge()
  const multivariant = (uri = 'master.m3u8') => {
    const text = presentation.files.get(uri)!.chunks.join('')
    t.same([...parseM3u8(text).complaints, ...judge.multivariant(text)], [])
    return text
  }
  const append = (value: Segment) => presentation.append(value, value.mediaSequence * 2000)
  return { cache, presentation, multivariant, append }
}

/** Presentation with one segment of each rendition. */
function present(
  t: Test,
  tracks: Partial<Record<RenditionName, readonly Track[]>>,
  options: SetUp = {},
) {
  const { presentation, multivariant, append } = setUp(t, options)
  const names = Object.keys(tracks) as RenditionName[]
  presentation.setRenditions(names)
  for (const rendition of names) append(segment(0, { rendition, tracks: tracks[rendition]! }))
  return multivariant()
}

const linesOf = (text: string, tag: string) => text.split('\n').filter((line) => line.includes(tag))

t.test('one rendition has CODECS, RESOLUTION, FRAME-RATE, and BANDWIDTH as measured', async (t) => {
  const { presentation, append, multivariant } = setUp(t)
  const { files } = presentation
  t.equal(files.get('master.m3u8'), undefined, 'none before the first segment')
  append(segment(0, { chunks: [Buffer.alloc(188 * 1000)], durationSec: 2 }))
  append(segment(1, { chunks: [Buffer.alloc(188 * 3000)], durationSec: 2 }))
  append(segment(2, { chunks: [Buffer.alloc(188 * 1500)], durationSec: 0.5, videoFrames: 15 }))
  t.equal(
    multivariant(),
    [
      '#EXTM3U',
      // Of runs that last 1 to 3 s, the last two segments together are the fastest: 2,707,200 bit/s in 2.5 s. The
      // average is 1,838,223 bit/s.
      '#EXT-X-STREAM-INF:BANDWIDTH=2800000,AVERAGE-BANDWIDTH=1900000,CODECS="avc1.42c00d,mp4a.40.2",RESOLUTION=320x180,FRAME-RATE=30.000',
      'playlist.m3u8',
      '',
    ].join('\n'),
  )
  t.equal(files.get('master.m3u8'), files.get('master.m3u8'), 'rendered once a change')
  t.equal(files.get('master.m3u8')!.maxAgeSec, 2)
})

t.test(
  'FRAME-RATE is counted where the bitstream has none, or is off by more than a quarter',
  async (t) => {
    const rateOf = (frameRate: number | undefined, videoFrames: number) => {
      const { frameRate: _, ...others } = VIDEO.parameters!
      const parameters = { ...others, ...(frameRate !== undefined && { frameRate }) }
      const { append, multivariant } = setUp(t)
      append(segment(0, { tracks: [{ ...VIDEO, parameters }, ENGLISH], videoFrames }))
      return /FRAME-RATE=([\d.]+)/.exec(multivariant())?.[1]
    }
    t.equal(rateOf(undefined, 60), '30.000')
    t.equal(rateOf(500, 60), '30.000')
    t.equal(rateOf(60, 60), '30.000')
    t.equal(rateOf(15, 60), '30.000')
    t.equal(rateOf(29.97, 60), '29.970')
    t.equal(rateOf(25, 60), '25.000', 'frames are lost, or those of the next segment came early')
    t.equal(rateOf(39, 60), '39.000')
    t.equal(rateOf(41, 60), '30.000')
  },
)

t.test(
  'the ETag of the multivariant playlist changes only with its text (RFC 9110 section 8.8.1)',
  async (t) => {
    const { presentation, append } = setUp(t)
    const read = () => presentation.files.get('master.m3u8')!
    append(segment(0))
    const { version } = read()
    for (let index = 1; index < 4; index++) {
      append(segment(index))
      t.equal(read().version, version, 'a segment of the same bitrate')
    }
    for (let index = 4; index < 14; index++) {
      append(segment(index, { chunks: [Buffer.alloc(24_800 + (index % 3) * 50)] }))
      t.equal(read().version, version, 'a segment of nearly the same bitrate')
    }
    append(segment(14, { chunks: [Buffer.alloc(50_000)] }))
    t.not(read().version, version, 'BANDWIDTH has changed')
  },
)

t.test(
  'BANDWIDTH is rounded up to two digits, never below the peak (RFC 8216bis 4.4.6.2)',
  async (t) => {
    const bandwidthOf = (sizeBytes: number) => {
      const { append, multivariant } = setUp(t)
      append(segment(0, { chunks: [Buffer.alloc(sizeBytes)] }))
      return /:BANDWIDTH=(\d+),AVERAGE-BANDWIDTH=\1,/.exec(multivariant())?.[1]
    }
    t.same([1, 24, 25, 26, 275, 276, 24_999, 25_000, 25_001, 2_476_000].map(bandwidthOf), [
      '4',
      '96',
      '100',
      '110',
      '1100',
      '1200',
      '100000',
      '100000',
      '110000',
      '10000000',
    ])
  },
)

t.test('BANDWIDTH is never below AVERAGE-BANDWIDTH (RFC 8216bis 4.4.6.2)', async (t) => {
  const { append, multivariant } = setUp(t)
  append(segment(0, { durationSec: 2.8 }))
  // With either neighbor longer than 1.5 target durations, alone shorter than half of one.
  append(segment(1, { durationSec: 0.5, chunks: [Buffer.alloc(100_000)] }))
  append(segment(2, { durationSec: 2.8 }))
  t.match(multivariant(), ':BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,')
})

t.test('counts the frame rate where the bitstream has none', async (t) => {
  const silent = { ...VIDEO, parameters: { codecString: 'avc1.42c00d', width: 320, height: 180 } }
  const { append, multivariant } = setUp(t)
  const frameRate = () => /FRAME-RATE=([\d.]+)/.exec(multivariant())?.[1]
  append(segment(0, { tracks: [silent], durationSec: 2.002 }))
  t.equal(frameRate(), '29.970')
  const later = { discontinuity: true, programDateTimeMs: WALL_MS + 60_000 }
  append(segment(1, { ...later, tracks: [silent], videoFrames: 50 }))
  t.equal(frameRate(), '25.000')
  later.programDateTimeMs += 60_000
  append(segment(2, { ...later, tracks: [AUDIO], videoFrames: 0 }))
  t.equal(frameRate(), undefined)
  t.match(multivariant(), /CODECS="mp4a.40.2"\n/)
})

t.test('CLOSED-CAPTIONS claims what is known of all variants (RFC 8216bis 4.4.6.2)', async (t) => {
  const captioned = { ...VIDEO, parameters: { ...VIDEO.parameters!, closedCaptions: true } }
  const [without, withCaptions] = [
    [VIDEO, ENGLISH],
    [captioned, ENGLISH],
  ].map((second) => ({
    main: [VIDEO, ENGLISH],
    'video-2': second,
  }))
  const values = (captions: CaptionsPolicy, tracks: typeof without) =>
    linesOf(present(t, tracks!, { captions }), 'STREAM-INF').map(
      (line) => /CLOSED-CAPTIONS=([^,]*)/.exec(line)?.[1],
    )
  t.same(values('auto', without), [undefined, undefined], 'captions may come later: no claim')
  t.same(values('auto', withCaptions), ['"cc"', '"cc"'], 'all variants say it, or none')
  t.same(values('always', without), ['"cc"', '"cc"'])
  t.same(values('always', withCaptions), ['"cc"', '"cc"'])
  t.same(values('never', without), ['NONE', 'NONE'])
  t.same(values('never', withCaptions), ['NONE', 'NONE'])
})

t.test(
  'captions have the language of the main audio, or und (Apple authoring specification)',
  async (t) => {
    const tagOf = (audio: Track) =>
      linesOf(present(t, { main: [VIDEO, audio] }, { captions: 'always' }), 'TYPE=CLOSED-CAPTIONS')
    const tag = (language: string) => [
      `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",LANGUAGE="${language}",AUTOSELECT=YES,INSTREAM-ID="CC1"`,
    ]
    t.same(tagOf(FRENCH), tag('fr'))
    t.same(tagOf(AUDIO), tag('und'))
  },
)

t.test('VIDEO-RANGE follows the listed segments (RFC 8216bis 4.4.6.2)', async (t) => {
  const ranged = (videoRange: 'SDR' | 'HLG' | 'PQ') => [
    { ...VIDEO, parameters: { ...VIDEO.parameters!, videoRange } },
    ENGLISH,
  ]
  const rangesOf = (text: string) =>
    linesOf(text, 'STREAM-INF').map((line) => /VIDEO-RANGE=([^,]*)/.exec(line)?.[1])
  t.same(rangesOf(present(t, { main: ranged('SDR') })), [undefined], 'absence implies SDR')
  t.same(rangesOf(present(t, { main: ranged('HLG') })), ['HLG'])
  t.same(rangesOf(present(t, { main: ranged('SDR'), 'video-2': ranged('PQ') })), ['SDR', 'PQ'])

  const { append, multivariant } = setUp(t, { playlistSegments: 3 })
  const ranges = (['SDR', 'HLG', 'SDR', 'PQ', 'SDR', 'SDR', 'SDR'] as const).map((range, index) => {
    append(segment(index, { tracks: ranged(range) }))
    return rangesOf(multivariant())[0]
  })
  t.same(ranges, [undefined, 'HLG', 'HLG', 'PQ', 'PQ', 'PQ', undefined], 'HDR mixed with less')
})

t.test('describes variants and alternative audio (RFC 8216bis 4.4.6)', async (t) => {
  const small = { ...VIDEO, parameters: { codecString: 'avc1.42c00b', width: 160, height: 90 } }
  const text = present(t, {
    main: [VIDEO, ENGLISH],
    'video-2': [small, ENGLISH],
    'audio-2': [FRENCH],
  })
  t.equal(
    text,
    [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="French",LANGUAGE="fr",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="2",URI="audio-2.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,CODECS="avc1.42c00d,mp4a.40.2",RESOLUTION=320x180,FRAME-RATE=30.000,AUDIO="audio"',
      'playlist.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,CODECS="avc1.42c00b,mp4a.40.2",RESOLUTION=160x90,FRAME-RATE=30.000,AUDIO="audio"',
      'video-2.m3u8',
      '',
    ].join('\n'),
  )
})

const CMAF = { formats: ['ts', 'cmaf'] } as const

/** Presentation with one segment of each rendition in both formats. */
function presentBoth(t: Test, tracks: Partial<Record<RenditionName, readonly Track[]>>) {
  const { presentation, multivariant, append } = setUp(t, CMAF)
  const names = Object.keys(tracks) as RenditionName[]
  presentation.setRenditions(names)
  for (const rendition of names) {
    const own = tracks[rendition]!
    append(segment(0, { rendition, tracks: own, videoFrames: own[0]!.kind === 'video' ? 60 : 0 }))
  }
  return { cmaf: multivariant(), ts: multivariant('ts.m3u8') }
}

const SMALL: Track = {
  ...VIDEO,
  parameters: { codecString: 'avc1.42c00b', width: 160, height: 90 },
}
const TINY: Track = { ...VIDEO, parameters: { codecString: 'avc1.42c00a', width: 96, height: 54 } }

t.test('CMAF has all audio in a group with URIs, transport stream its own playlist', async (t) => {
  const { cmaf, ts } = presentBoth(t, {
    main: [VIDEO, ENGLISH],
    'video-2': [SMALL, ENGLISH],
    'video-3': [TINY, ENGLISH],
    'audio-2': [FRENCH],
    'cmaf-video-1': [VIDEO],
    'cmaf-video-2': [SMALL],
    'cmaf-video-3': [TINY],
    'cmaf-audio-1': [ENGLISH],
    'cmaf-audio-2': [FRENCH],
  })
  t.equal(
    cmaf,
    [
      '#EXTM3U',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="cmaf-audio-1.m3u8"',
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="French",LANGUAGE="fr",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="2",URI="cmaf-audio-2.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,CODECS="avc1.42c00d,mp4a.40.2",RESOLUTION=320x180,FRAME-RATE=30.000,AUDIO="audio"',
      'cmaf-video-1.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,CODECS="avc1.42c00b,mp4a.40.2",RESOLUTION=160x90,FRAME-RATE=30.000,AUDIO="audio"',
      'cmaf-video-2.m3u8',
      '#EXT-X-STREAM-INF:BANDWIDTH=200000,AVERAGE-BANDWIDTH=200000,CODECS="avc1.42c00a,mp4a.40.2",RESOLUTION=96x54,FRAME-RATE=30.000,AUDIO="audio"',
      'cmaf-video-3.m3u8',
      '',
    ].join('\n'),
  )
  t.notMatch(ts, 'cmaf')
  t.same(
    linesOf(ts, '.m3u8').filter((line) => !line.startsWith('#')),
    ['playlist.m3u8', 'video-2.m3u8', 'video-3.m3u8'],
  )
  t.equal(linesOf(ts, 'URI="audio-2.m3u8"').length, 1)
})

t.test('one audio beside video is a group of one in CMAF', async (t) => {
  const { cmaf, ts } = presentBoth(t, {
    main: [VIDEO, ENGLISH],
    'cmaf-video-1': [VIDEO],
    'cmaf-audio-1': [ENGLISH],
  })
  t.match(linesOf(cmaf, 'TYPE=AUDIO'), [/URI="cmaf-audio-1.m3u8"$/])
  t.match(linesOf(cmaf, 'STREAM-INF'), [/CODECS="avc1.42c00d,mp4a.40.2".*AUDIO="audio"$/])
  t.notMatch(ts, 'TYPE=AUDIO')
})

t.test('audio without video is the variant in CMAF, with its alternatives', async (t) => {
  const one = presentBoth(t, { main: [ENGLISH], 'cmaf-audio-1': [ENGLISH] })
  t.notMatch(one.cmaf, 'TYPE=AUDIO')
  t.match(one.cmaf, /CODECS="mp4a.40.2"\ncmaf-audio-1.m3u8\n$/)
  const two = presentBoth(t, {
    ...{ main: [ENGLISH], 'audio-2': [FRENCH] },
    ...{ 'cmaf-audio-1': [ENGLISH], 'cmaf-audio-2': [FRENCH] },
  })
  t.match(linesOf(two.cmaf, 'TYPE=AUDIO'), [
    /NAME="English".*DEFAULT=YES.*URI="cmaf-audio-1.m3u8"$/,
    /NAME="French".*DEFAULT=NO.*URI="cmaf-audio-2.m3u8"$/,
  ])
  t.match(two.cmaf, /AUDIO="audio"\ncmaf-audio-1.m3u8\n$/)
})

t.test('without CMAF or transport stream, master.m3u8 is of the other', async (t) => {
  const ts = present(t, { main: [VIDEO, ENGLISH] }, { formats: ['ts'] })
  t.match(ts, /\nplaylist.m3u8\n$/)
  const { presentation, multivariant, append } = setUp(t, { formats: ['cmaf'] })
  presentation.setRenditions(['cmaf-video-1', 'cmaf-audio-1'])
  append(segment(0, { rendition: 'cmaf-video-1', tracks: [VIDEO] }))
  t.equal(presentation.files.get('master.m3u8'), undefined, 'not before all renditions')
  append(segment(0, { rendition: 'cmaf-audio-1', tracks: [ENGLISH] }))
  t.match(multivariant(), /\ncmaf-video-1.m3u8\n$/)
  for (const uri of ['ts.m3u8', 'playlist.m3u8', 'preview.ts']) {
    t.equal(presentation.files.availability(uri), 'unknown', uri)
  }
})

t.test('master.m3u8 has the variants of ts.m3u8 where CMAF carries nothing', async (t) => {
  const layerII: Track = { ...AUDIO, streamType: 0x03, codec: 'mp2' }
  const { presentation, multivariant, append } = setUp(t, { formats: ['ts', 'cmaf'] })
  presentation.setRenditions(['main'])
  append(segment(0, { tracks: [layerII], videoFrames: 0 }))
  t.match(multivariant('ts.m3u8'), /\nplaylist.m3u8\n$/)
  t.equal(multivariant(), multivariant('ts.m3u8'))
})

t.test('a codec that players may lack makes a group and variants of its own', async (t) => {
  const text = present(t, {
    main: [VIDEO, FRENCH],
    'audio-2': [ENGLISH],
    'audio-3': [DOLBY],
    'audio-4': [{ ...DOLBY, language: 'fra' }],
  })
  t.same(
    linesOf(text, 'TYPE=AUDIO').map((line) => line.replace(/.*GROUP-ID/, '')),
    [
      '="audio",NAME="French",LANGUAGE="fr",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2"',
      '="audio",NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="2",URI="audio-2.m3u8"',
      '="audio-ac3",NAME="French",LANGUAGE="fr",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="6",URI="audio-4.m3u8"',
      '="audio-ac3",NAME="English",LANGUAGE="en",DEFAULT=NO,AUTOSELECT=YES,CHANNELS="6",URI="audio-3.m3u8"',
    ],
  )
  t.same(
    linesOf(text, 'STREAM-INF').map((line) => /CODECS="(.*?)".*AUDIO="(.*?)"/.exec(line)?.slice(1)),
    [
      ['avc1.42c00d,mp4a.40.2', 'audio'],
      ['avc1.42c00d,mp4a.40.2,ac-3', 'audio-ac3'],
    ],
  )
})

t.test('all audio groups have the same members (RFC 8216bis 4.4.6.1.1)', async (t) => {
  const describing = Buffer.from('0a04656e6703', 'hex')
  const text = present(t, {
    main: [VIDEO, ENGLISH],
    'audio-2': [FRENCH],
    'audio-3': [{ ...ENGLISH, descriptors: describing }],
    'audio-4': [{ ...ENGLISH, pid: 300 }],
    'audio-5': [DOLBY],
  })
  t.same(
    linesOf(text, 'TYPE=AUDIO').map((line) =>
      [/GROUP-ID="(.*?)"/, /NAME="(.*?)"/, /CHANNELS="(.*?)"/, /URI="(.*?)"/].map(
        (attribute) => attribute.exec(line)?.[1],
      ),
    ),
    [
      ['audio', 'English', '2', undefined],
      ['audio', 'French', '2', 'audio-2.m3u8'],
      ['audio', 'English 3', '2', 'audio-3.m3u8'],
      ['audio', 'English 4', '2', 'audio-4.m3u8'],
      ['audio-ac3', 'English', '6', 'audio-5.m3u8'],
      ['audio-ac3', 'French', '2', 'audio-2.m3u8'],
      ['audio-ac3', 'English 3', '2', 'audio-3.m3u8'],
      ['audio-ac3', 'English 4', '2', 'audio-4.m3u8'],
    ],
    'a member that a codec lacks is in its group with another codec',
  )
})

t.test('audio without a language joins a member that lacks its codec', async (t) => {
  const { language, ...untagged } = DOLBY
  t.equal(language, 'eng')
  const membersOf = (tracks: Partial<Record<RenditionName, readonly Track[]>>) =>
    linesOf(present(t, tracks), 'TYPE=AUDIO').map((line) =>
      [/GROUP-ID="(.*?)"/, /LANGUAGE="(.*?)"/, /URI="(.*?)"/].map(
        (attribute) => attribute.exec(line)?.[1],
      ),
    )
  t.same(
    membersOf({
      main: [VIDEO, FRENCH],
      'audio-2': [ENGLISH],
      'audio-3': [DOLBY],
      'audio-4': [untagged],
    }),
    [
      ['audio', 'fr', undefined],
      ['audio', 'en', 'audio-2.m3u8'],
      ['audio-ac3', 'fr', 'audio-4.m3u8'],
      ['audio-ac3', 'en', 'audio-3.m3u8'],
    ],
    'the same language comes first',
  )
  t.same(
    membersOf({ main: [VIDEO, AUDIO], 'audio-2': [DOLBY] }),
    [
      ['audio', 'en', undefined],
      ['audio-ac3', 'en', 'audio-2.m3u8'],
    ],
    'the member has the language of any of its tracks',
  )
})

t.test(
  'AUTOSELECT=YES is on the first of several members of the same language and role (RFC 8216bis 4.4.6.1.1)',
  async (t) => {
    const text = present(t, {
      main: [VIDEO, ENGLISH],
      'audio-2': [{ ...ENGLISH, pid: 300 }],
      'audio-3': [{ ...ENGLISH, descriptors: Buffer.from('0a04656e6703', 'hex') }],
      'audio-4': [AUDIO],
      'audio-5': [{ ...AUDIO, pid: 301 }],
      'audio-6': [DOLBY],
    })
    const chosen = ['YES', 'NO', 'YES', 'YES', 'NO']
    t.same(
      linesOf(text, 'TYPE=AUDIO').map((line) => /AUTOSELECT=(\w+)/.exec(line)?.[1]),
      [...chosen, ...chosen],
    )
  },
)

t.test(
  'names of audio renditions are unique in their group, and give the language in English; und is the LANGUAGE of untagged audio (RFC 5646 4.1)',
  async (t) => {
    const commentary = Buffer.from('0a04656e6703', 'hex')
    const named = (language?: string): readonly Track[] => [
      { ...AUDIO, ...(language !== undefined && { language }) },
    ]
    const text = present(t, {
      main: [VIDEO, AUDIO],
      'audio-2': named('ger'),
      'audio-3': named('deu'),
      'audio-4': named('und'),
      'audio-5': named('qaa'),
      'audio-6': [{ ...ENGLISH, descriptors: commentary }],
      'audio-7': named('x"y'),
    })
    t.same(
      linesOf(text, 'TYPE=AUDIO').map((line) =>
        /NAME="(.*?)",LANGUAGE="(.*?)",/.exec(line)!.slice(1),
      ),
      [
        ['Audio 1', 'und'],
        ['German', 'de'],
        ['German 3', 'de'],
        ['Audio 4', 'und'],
        ['Audio 5', 'qaa'],
        ['English', 'en'],
        ['Audio 7', 'und'],
      ],
    )
    t.same(linesOf(text, 'CHARACTERISTICS="public.accessibility.describes-video"').length, 1)
  },
)

t.test(
  'there is no multivariant playlist until all can be played, since players read it once',
  async (t) => {
    const { presentation, append, multivariant } = setUp(t)
    presentation.setRenditions(['main', 'video-2', 'audio-2'])
    append(segment(0))
    append(segment(0, { rendition: 'video-2' }))
    t.notOk(presentation.playable)
    t.equal(presentation.files.get('master.m3u8'), undefined)
    append(segment(0, { rendition: 'audio-2', chunks: [], tracks: [] }))
    t.ok(presentation.playable)
    t.notMatch(multivariant(), 'audio-2', 'one that had no media yet is not offered')
    append(segment(1, { rendition: 'audio-2', tracks: [FRENCH] }))
    t.match(multivariant(), 'audio-2')
    presentation.setRenditions(['main', 'audio-2', 'audio-3'])
    t.notMatch(multivariant(), 'video-2', 'what is offered no more')
    t.ok(presentation.files.get('video-2.m3u8'), 'it stays available to its viewers')
    t.notMatch(multivariant(), 'audio-3', 'later ones are offered as they come')
  },
)

t.test('INDEPENDENT-SEGMENTS is in media playlists only (RFC 8216bis 4.4.2.1)', async (t) => {
  const { presentation, append, multivariant } = setUp(t)
  presentation.setRenditions(['main', 'video-2'])
  append(segment(0))
  append(segment(0, { rendition: 'video-2', independent: false }))
  const has = (name: string) =>
    presentation.files.get(name)!.chunks.join('').includes('#EXT-X-INDEPENDENT-SEGMENTS\n')
  t.same(['playlist.m3u8', 'video-2.m3u8'].map(has), [true, false])
  t.notMatch(
    multivariant(),
    'INDEPENDENT',
    'players read it once: it would hold for later segments',
  )
})

t.test(
  'renditions keep step: one that begins later, under memory pressure, with gaps and discontinuities',
  async (t) => {
    const segmentBytes = 25_000
    const { presentation, append, cache } = setUp(t, {
      playlistSegments: 8,
      maxBytes: 2 * 13 * segmentBytes,
    })
    const judge = new StreamJudge()
    const listed = (uri: string) => {
      const text = presentation.files.get(uri)?.chunks.join('')
      if (text === undefined) return undefined
      const { manifest, complaints } = parseM3u8(text)
      t.same([...judge.playlist(uri, text), ...complaints], [], uri)
      let discontinuities = manifest.discontinuitySequence!
      return manifest.segments!.map((segment, index) => {
        if (segment.discontinuity === true) discontinuities++
        const isGap = new RegExp(`#EXT-X-GAP\\n.*\\n.*\\n${segment.uri}\\n`).test(text)
        t.equal(presentation.files.get(segment.uri) === undefined, isGap, segment.uri)
        return [
          manifest.mediaSequence! + index,
          segment.duration,
          segment.programDateTime,
          discontinuities,
        ]
      })
    }
    let discontinuitySequence = 0
    let refusedAtFirst = 0
    for (let msn = 0; msn < 40; msn++) {
      const discontinuity = msn % 7 === 3
      if (discontinuity) discontinuitySequence++
      const numbers = { discontinuity, discontinuitySequence }
      append(segment(msn, numbers))
      listed('playlist.m3u8')
      if (msn < 5) continue
      const isGap = msn % 5 === 0
      append(
        segment(msn, {
          ...{ ...numbers, rendition: 'audio-2', tracks: [FRENCH] },
          ...(isGap && { chunks: [] }),
        }),
      )
      const [audio, main] = [listed('audio-2.m3u8')!, listed('playlist.m3u8')!]
      t.same(audio, main.slice(main.length - audio.length))
      if (msn > 20) t.equal(audio.length, main.length, 'windows shrink together')
      // Segments listed before the windows shrank are retained for longer.
      else refusedAtFirst = cache.stats.refused
      t.ok(cache.stats.bytes <= cache.stats.maxBytes)
    }
    t.equal(cache.stats.refused, refusedAtFirst, 'there is room for all in the long run')
    const window = listed('playlist.m3u8')!.length
    t.ok(window >= 3 && window < 8, `${window} segments of 8`)
    presentation.end()
    t.match(presentation.files.get('audio-2.m3u8')!.chunks.join(''), /ENDLIST\n$/)
    presentation.discard()
    t.equal(cache.stats.segments, 0)
    t.equal(presentation.files.get('audio-2.m3u8'), undefined)
  },
)
