import t from 'tap'
import { Demuxer, type DemuxerOutput } from '../../../src/mpegts/demux/demuxer.ts'
import type { ProgramChoice } from '../../../src/mpegts/program-choice.ts'
import type { PesUnit } from '../../../src/mpegts/pes-unit.ts'
import type { Track } from '../../../src/mpegts/track.ts'
import { readPcr } from '../../../src/pace/packet-times.ts'
import { programConfig } from '../../codec/program-config-builder.ts'
import { adtsFrames, h264AccessUnit } from '../../support/access-units.ts'
import { demux, payloadOf, programsOf, readFixture, unitsOf } from '../demux.ts'
import { patSection, pesPacket, pmtSection, TsBuilder, tsPacket } from '../ts-builder.ts'

const VIDEO = { pid: 0x100, streamType: 0x1b }
const AUDIO = { pid: 0x101, streamType: 0x0f }
const BOTH = [VIDEO, AUDIO]

/** An H.264 access unit that is no key frame, identified by its fill byte. */
const frame = (fill: number, sizeBytes = 400): Buffer =>
  Buffer.concat([
    Buffer.from([0, 0, 0, 1, 0x09, 0xf0, 0, 0, 0, 1, 0x41, 0x9a]),
    Buffer.alloc(sizeBytes, fill),
  ])

/** Unbounded video PES packet, as ffmpeg sends them. */
const videoPes = (fill: number, ptsTicks: number, sizeBytes?: number): Buffer =>
  pesPacket(frame(fill, sizeBytes), { ptsTicks, length: 'none' })

const audioPes = (fill: number, ptsTicks: number, sizeBytes = 400): Buffer =>
  pesPacket(Buffer.alloc(sizeBytes, fill), { ptsTicks, streamId: 0xc0 })

/** Outputs other than headers, as one line each. */
const summary = (outputs: readonly DemuxerOutput[]) =>
  outputs.flatMap((output) => {
    if (output.type === 'header') return []
    if (output.type === 'program') return `program${output.layoutChanged ? ' changed' : ''}`
    if (output.type === 'packets') return `packets ${output.pid}`
    if (output.type === 'splice') return `splice ${output.splice.ptsTicks}`
    const { track, ptsTicks, damaged } = output.unit
    return `${track.kind} ${ptsTicks}${damaged ? ' damaged' : ''}`
  })

t.test('an unbounded PES packet ends at the next unit start (13818-1 2.4.3.7)', async (t) => {
  const demuxer = new Demuxer()
  const head = new TsBuilder().program(BOTH).unit(0x100, videoPes(1, 3000)).bytes
  const ts = new TsBuilder().program(BOTH).unit(0x100, videoPes(1, 3000))
  t.strictSame(summary(demuxer.push(head)), ['program'])
  const next = ts.unit(0x100, videoPes(2, 6000)).bytes.subarray(head.length)
  const outputs = demuxer.push(next)
  t.strictSame(summary(outputs), ['video 3000'])
  t.ok(payloadOf(unitsOf(outputs)[0]!).equals(frame(1)))
  t.strictSame(summary(demuxer.end()), ['video 6000'])
})

t.test(
  'an unbounded PES packet that is cut off is damaged: its last packet is not stuffed',
  async (t) => {
    const bytes = readFixture('demo')
    const sizesOf = (units: readonly PesUnit[]) => units.map((unit) => payloadOf(unit).length)
    const whole = sizesOf(unitsOf(demux(bytes), 0x100))
    for (let packets = 100; packets < 400; packets++) {
      const units = unitsOf(demux(bytes.subarray(0, packets * 188)), 0x100)
      const isCut = sizesOf(units).at(-1)! < whole[units.length - 1]!
      t.equal(units.at(-1)!.damaged, isCut, `${packets} packets`)
    }
  },
)

t.test('a bounded PES packet is put out with its last transport packet', async (t) => {
  const demuxer = new Demuxer()
  const ts = new TsBuilder().program(BOTH).unit(0x101, audioPes(1, 3000)).bytes
  t.strictSame(summary(demuxer.push(ts)), ['program', 'audio 3000'])
  t.strictSame(demuxer.end(), [])
})

t.test('PES_packet_length is ignored on a PID after one that was too short', async (t) => {
  const ts = new TsBuilder().program([VIDEO])
  for (let i = 1; i <= 4; i++) {
    ts.unit(0x100, pesPacket(frame(i, 1000), { ptsTicks: i * 3000, length: 100 }))
  }
  const units = unitsOf(demux(ts.bytes))
  t.strictSame(
    units.map((unit) => unit.ptsTicks),
    [3000, 6000, 9000, 12_000],
  )
  t.ok(payloadOf(units[0]!).length < 1000, 'the first was believed')
  t.strictSame(
    units.slice(1).map((unit) => payloadOf(unit)),
    [frame(2, 1000), frame(3, 1000), frame(4, 1000)],
  )
})

t.test('PES_packet_length stays trusted after a lost PES start', async (t) => {
  const ts = new TsBuilder().program(BOTH)
  for (let i = 1; i <= 4; i++) ts.unit(0x101, audioPes(i, i * 3000))
  const packets = ts.packets.toSpliced(5, 1)
  const demuxer = new Demuxer()
  t.strictSame(summary(demuxer.push(Buffer.concat(packets))), [
    'program',
    'audio 3000',
    'audio 9000',
    'audio 12000',
  ])
  t.equal(demuxer.stats.orphanPackets, 2)
})

t.test('PES_packet_length stays trusted after a unit start without a PES header', async (t) => {
  const demuxer = new Demuxer()
  const ts = new TsBuilder().program(BOTH).unit(0x101, audioPes(1, 3000))
  ts.unit(0x101, Buffer.alloc(500, 7)).unit(0x101, audioPes(2, 6000))
  t.strictSame(summary(demuxer.push(ts.bytes)), ['program', 'audio 3000', 'audio 6000'])
})

t.test('chunks are views of runs of adjacent packets', async (t) => {
  const bytes = new TsBuilder()
    .program(BOTH)
    .unit(0x101, audioPes(1, 3000, 1000))
    .packet({ pid: 0x1fff, payload: Buffer.alloc(184) })
    .unit(0x101, audioPes(2, 6000, 1000)).bytes
  const whole = unitsOf(new Demuxer().push(bytes))
  t.strictSame(
    whole.map(({ chunks }) => chunks.length),
    [1, 1],
  )
  t.ok(whole.every(({ chunks }) => chunks.every(({ buffer }) => buffer === bytes.buffer)))
  t.equal(whole[0]!.sizeBytes, 6 * 188)

  // The boundary is in the third packet of the first PES packet: only that packet is copied.
  const border = 2 * 188 + 2 * 188 + 50
  const cut = unitsOf(demux(bytes, [border, bytes.length]))
  t.strictSame(
    cut[0]!.chunks.map((chunk) => chunk.length / 188),
    [2, 1, 3],
  )
  t.strictSame(
    cut[0]!.chunks.map(({ buffer }) => buffer === bytes.buffer),
    [true, false, true],
  )
})

t.test('a PES header and a start code may span packets at any byte', async (t) => {
  const idr = h264AccessUnit({ key: true, sizeBytes: 50 })
  const pes = pesPacket(idr, { ptsTicks: 6000, dtsTicks: 3000, length: 'none' })
  for (const step of [1, 2, 3, 4, 5]) {
    const ts = new TsBuilder().program([VIDEO])
    for (let at = 0; at < pes.length; at += step) {
      ts.packet({ pid: 0x100, payload: pes.subarray(at, at + step), unitStart: at === 0 })
    }
    const [unit] = unitsOf(demux(ts.bytes))
    t.match(unit, { ptsTicks: 6000, dtsTicks: 3000, randomAccess: true }, `${step} bytes a packet`)
    t.ok(payloadOf(unit!).equals(idr))
  }
})

t.test('continuity counters (2.4.3.3)', async (t) => {
  const stream = () => {
    const ts = new TsBuilder().program([VIDEO])
    for (let i = 1; i <= 3; i++) ts.unit(0x100, videoPes(i, i * 3000))
    return ts.packets
  }
  const run = (packets: Buffer[]) => {
    const demuxer = new Demuxer()
    const outputs = demuxer.push(Buffer.concat(packets)).concat(demuxer.end())
    return { outputs, lines: summary(outputs).slice(1), stats: demuxer.stats }
  }
  const intact = run(stream())

  t.test(
    'the test stream has its first PES packet in packets 2-4, the second in 5-7',
    async (t) => {
      t.strictSame(intact.lines, ['video 3000', 'video 6000', 'video 9000'])
      t.equal(stream().length, 11)
    },
  )

  t.test('a lost packet within a PES packet damages that one only', async (t) => {
    const { lines, stats } = run(stream().toSpliced(6, 1))
    t.strictSame(lines, ['video 3000', 'video 6000 damaged', 'video 9000'])
    t.match(stats, { continuityErrors: 1, damagedUnits: 1, units: 3 })
  })

  t.test(
    'a lost last packet, detected at the next start, damages the open PES packet',
    async (t) => {
      t.strictSame(run(stream().toSpliced(4, 1)).lines, [
        'video 3000 damaged',
        'video 6000',
        'video 9000',
      ])
    },
  )

  t.test(
    'after a lost start, the rest joins the previous PES packet, which is damaged',
    async (t) => {
      t.strictSame(run(stream().toSpliced(5, 1)).lines, ['video 3000 damaged', 'video 9000'])
    },
  )

  t.test('a packet with transport_error_indicator counts as lost', async (t) => {
    const packets = stream()
    packets[6]![1]! |= 0x80
    const { lines, stats } = run(packets)
    t.strictSame(lines, ['video 3000', 'video 6000 damaged', 'video 9000'])
    t.match(stats, { transportErrors: 1, continuityErrors: 1 })
  })

  t.test('a scrambled packet is counted and dropped', async (t) => {
    const packets = stream()
    packets[6]![3]! |= 0x80
    const { lines, stats } = run(packets)
    t.strictSame(lines, ['video 3000', 'video 6000 damaged', 'video 9000'])
    t.equal(stats.scrambledPackets, 1)
  })

  t.test('a duplicate packet is dropped, even with another PCR', async (t) => {
    const packets = stream().flatMap((packet) => [packet, packet])
    const { outputs, stats } = run(packets)
    t.strictSame(unitsOf(outputs).map(payloadOf), unitsOf(intact.outputs).map(payloadOf))
    t.match(stats, { duplicatePackets: 11, continuityErrors: 0, damagedUnits: 0 })

    const pcr = (value: number) => ({
      pid: 0x100,
      counter: 7,
      payload: videoPes(1, 3000, 100),
      unitStart: true,
      adaptation: Buffer.alloc(6, value),
    })
    const { packets: head } = new TsBuilder().program([VIDEO])
    const twice = run([...head, tsPacket(pcr(1)), tsPacket(pcr(2))])
    t.equal(twice.stats.duplicatePackets, 1)
    t.strictSame(twice.lines, ['video 3000'])
  })

  t.test('a repeated counter with other bytes counts as a loss', async (t) => {
    const packets = stream()
    const repeated = Buffer.from(packets[6]!)
    repeated[100]! ^= 1
    const { lines, stats } = run(packets.toSpliced(7, 0, repeated))
    t.strictSame(lines, ['video 3000', 'video 6000 damaged', 'video 9000'])
    t.match(stats, { duplicatePackets: 0, continuityErrors: 1 })
  })

  t.test('a counter jump with discontinuity_indicator is no loss (2.4.3.5)', async (t) => {
    const ts = new TsBuilder().program([VIDEO]).unit(0x100, videoPes(1, 3000))
    const pes = videoPes(2, 6000, 100)
    ts.packet({ pid: 0x100, counter: 9, payload: pes, unitStart: true, discontinuity: true })
    const { lines, stats } = run(ts.packets)
    t.strictSame(lines, ['video 3000', 'video 6000'])
    t.equal(stats.continuityErrors, 0)
  })
})

t.test('gap: a loss of SRT packets', async (t) => {
  const stream = () => {
    const ts = new TsBuilder().program(BOTH).unit(0x100, videoPes(1, 3000, 170))
    const pes = audioPes(1, 3000, 600)
    for (let at = 0; at < pes.length; at += 184) {
      ts.packet({ pid: 0x101, payload: pes.subarray(at, at + 184), unitStart: at === 0 })
    }
    return ts.unit(0x100, videoPes(2, 6000))
  }

  t.test('a gap within a packet drops the received part of it', async (t) => {
    const { packets } = stream()
    const demuxer = new Demuxer()
    demuxer.push(Buffer.concat(packets).subarray(0, 5 * 188 + 100))
    demuxer.gap(1)
    const outputs = demuxer.push(Buffer.concat(packets.slice(6))).concat(demuxer.end())
    t.strictSame(summary(outputs), ['video 3000', 'video 6000', 'audio 3000 damaged'])
    t.match(demuxer.stats, { skippedBytes: 100, lostSyncs: 0, continuityErrors: 1 })
  })

  t.test('a PES packet without a later packet before a gap is damaged', async (t) => {
    const { packets } = stream()
    const demuxer = new Demuxer()
    demuxer.push(Buffer.concat(packets.slice(0, -1)))
    demuxer.gap(1)
    demuxer.push(tsPacket({ pid: 0x100, counter: 2, adaptation: Buffer.alloc(6) }))
    t.strictSame(summary(demuxer.end()), ['video 6000 damaged'])
  })

  t.test('a gap of sixteen packets or more damages all open PES packets', async (t) => {
    const { packets } = stream()
    for (const [lostPackets, damaged] of [
      [2, ''],
      [3, ' damaged'],
    ] as const) {
      const demuxer = new Demuxer()
      demuxer.push(Buffer.concat(packets.slice(0, 5)))
      demuxer.gap(lostPackets)
      const outputs = demuxer.push(Buffer.concat(packets.slice(5))).concat(demuxer.end())
      t.strictSame(summary(outputs), [`audio 3000${damaged}`, `video 3000${damaged}`, 'video 6000'])
    }
  })
})

t.test('PCR-only packets are kept', async (t) => {
  const pcr = { adaptation: Buffer.from([0, 0, 0, 0, 0x7e, 0]) }
  t.test(
    'PCR-only packets between PES packets and on their own PID are put out as packets',
    async (t) => {
      const ts = new TsBuilder().program([AUDIO], { pcrPid: 0x1ff })
      ts.packet({ pid: 0x1ff, ...pcr })
        .unit(0x101, audioPes(1, 3000))
        .packet({ pid: 0x101, ...pcr })
      const outputs = new Demuxer().push(ts.bytes)
      t.strictSame(summary(outputs), ['program', 'packets 511', 'audio 3000'])
      t.match(outputs[1], { chunks: [ts.packets[2]!] })
    },
  )

  t.test('PCR-only packets within a PES packet stay at their place', async (t) => {
    const pes = audioPes(1, 3000, 300)
    const ts = new TsBuilder().program([AUDIO], { pcrPid: 0x101 })
    ts.packet({ pid: 0x101, payload: pes.subarray(0, 184), unitStart: true })
    ts.packet({ pid: 0x101, ...pcr })
    ts.packet({ pid: 0x101, payload: pes.subarray(184) })
    const [unit] = unitsOf(demux(ts.bytes))
    t.ok(Buffer.concat(unit!.chunks).equals(ts.bytes.subarray(2 * 188)))
    t.ok(payloadOf(unit!).equals(Buffer.alloc(300, 1)))
  })
})

t.test('PAT and PMT (2.4.4)', async (t) => {
  const pmt = pmtSection(1, 0x100, BOTH)
  const pat = patSection([[1, 0x1000]])
  const unit = (ts: TsBuilder) => ts.unit(0x101, audioPes(1, 3000))

  t.test('the program is unknown before PAT and PMT', async (t) => {
    const demuxer = new Demuxer()
    demuxer.push(unit(new TsBuilder().sections(0x1000, pmt).sections(0, pat)).bytes)
    t.equal(demuxer.program, undefined)
    t.match(demuxer.stats, { patSections: 1, pmtSections: 0 })
    demuxer.push(new TsBuilder().sections(0x1000, pmt).bytes)
    demuxer.end()
    t.strictSame(
      demuxer.program?.tracks.map(({ pid }) => pid),
      [0x100, 0x101],
    )
  })

  t.test('sections may span packets, and packets may hold several sections', async (t) => {
    const descriptors = Buffer.concat([Buffer.from([0x0a, 4]), Buffer.from('DEU\0'), padding(190)])
    const long = pmtSection(1, 0x100, [VIDEO, { ...AUDIO, descriptors }])
    const other = pmtSection(7, 0x200, [{ pid: 0x200, streamType: 0x1b }])
    t.ok(long.length > 184)
    const [program] = programsOf(
      demux(new TsBuilder().sections(0, pat).sections(0x1000, other, long, other).bytes),
    )
    t.match(program?.tracks[1], { language: 'deu', descriptors })
  })

  t.test('a section starts at the offset in pointer_field', async (t) => {
    const ts = new TsBuilder().sections(0, pat)
    ts.packet({
      pid: 0x1000,
      payload: Buffer.concat([Buffer.from([0]), pmt.subarray(0, 9)]),
      unitStart: true,
    })
    const rest = pmt.subarray(9)
    const next = pmtSection(1, 0x100, [VIDEO])
    ts.packet({
      pid: 0x1000,
      payload: Buffer.concat([Buffer.from([rest.length]), rest, next]),
      unitStart: true,
    })
    const programs = programsOf(demux(ts.bytes))
    t.strictSame(
      programs.map(({ tracks }) => tracks.length),
      [2, 1],
    )
  })

  t.test(
    'a PMT section with a wrong CRC_32, not yet valid, or not the first is ignored',
    async (t) => {
      const broken = Buffer.from(pmtSection(1, 0x100, [VIDEO]))
      broken[13]! ^= 0x20
      const later = pmtSection(1, 0x100, [VIDEO], { current: false })
      const second = pmtSection(1, 0x100, [VIDEO], { sectionNumber: 1 })
      const demuxer = new Demuxer()
      const ts = new TsBuilder()
        .sections(0, pat)
        .sections(0x1000, broken)
        .sections(0x1000, later, second)
      t.strictSame(demux(ts.bytes, undefined, demuxer), [])
      t.equal(demuxer.stats.psiCrcErrors, 1)
      t.equal(demuxer.program, undefined)
    },
  )

  t.test('a section with a lost packet is dropped', async (t) => {
    const long = pmtSection(1, 0x100, [{ ...VIDEO, descriptors: padding(400) }])
    const ts = new TsBuilder().sections(0, pat).sections(0x1000, long).sections(0x1000, pmt)
    const outputs = demux(Buffer.concat(ts.packets.toSpliced(2, 1)))
    t.strictSame(
      programsOf(outputs).map(({ tracks }) => tracks.length),
      [2],
    )
  })

  t.test('a section counts as changed by its content, not by its version_number', async (t) => {
    const ts = new TsBuilder().sections(0, pat).sections(0x1000, pmt)
    ts.sections(0x1000, pmtSection(1, 0x100, BOTH, { version: 9 }))
    ts.sections(0x1000, pmtSection(1, 0x100, [VIDEO], { version: 9 }))
    t.strictSame(summary(demux(ts.bytes)), ['program', 'program changed'])
  })

  t.test('streams on reserved PIDs and on PIDs of tables are ignored', async (t) => {
    const streams = [0, 0x0f, 0x1000, 0x1fff, 0x101].map((pid) => ({ pid, streamType: 0x0f }))
    const outputs = demux(unit(new TsBuilder().program(streams)).bytes)
    t.strictSame(
      programsOf(outputs)[0]?.tracks.map(({ pid }) => pid),
      [0x1000, 0x101],
    )
    t.equal(unitsOf(outputs).length, 1)

    const ts = new TsBuilder().program(streams).sections(0x1000, pmtSection(1, 0x100, [AUDIO]))
    t.strictSame(summary(demux(ts.bytes)), ['program', 'program changed'])
  })
})

t.test('choice of the carried program', async (t) => {
  const pat = patSection([
    [0, 0x10],
    [1, 0x1001],
    [2, 0x1002],
    [3, 0x1003],
  ])
  const radio = pmtSection(1, 0x101, [AUDIO])
  const first = pmtSection(2, 0x200, [{ pid: 0x200, streamType: 0x1b }])
  const second = pmtSection(3, 0x300, [{ pid: 0x300, streamType: 0x24 }])
  const numbers = (ts: TsBuilder) => programsOf(demux(ts.bytes)).map((it) => it.programNumber)

  t.test('the first program with video in PAT order is carried by default', async (t) => {
    const ts = new TsBuilder().sections(0, pat).sections(0x1003, second).sections(0x1001, radio)
    t.strictSame(numbers(ts), [], 'the second may still turn out to have video')
    t.strictSame(numbers(ts.sections(0x1002, first)), [2])
  })

  t.test('a repeated program map ends the wait for missing ones', async (t) => {
    const ts = new TsBuilder().sections(0, pat).sections(0x1001, radio).sections(0x1003, second)
    t.strictSame(numbers(ts.sections(0x1001, radio)), [3])
  })

  t.test('the first program is carried when none has video', async (t) => {
    const other = pmtSection(2, 0x200, [{ pid: 0x200, streamType: 0x03 }])
    const ts = new TsBuilder().sections(0, patSection([[1, 0x1001], [2, 0x1002]])) // prettier-ignore
    t.strictSame(numbers(ts.sections(0x1002, other).sections(0x1001, radio)), [1])
  })

  t.test('the carried program stays while the PAT lists it, then another is chosen', async (t) => {
    const ts = new TsBuilder().sections(0, patSection([[2, 0x1002]])).sections(0x1002, first)
    ts.sections(0, pat).sections(0x1001, radio).sections(0x1003, second).sections(0x1003, second)
    t.strictSame(numbers(ts), [2])
    ts.sections(0, patSection([[3, 0x1003]])).sections(0x1003, second)
    t.strictSame(numbers(ts), [2, 3])
  })

  t.test('the carried program stays when its map moves to another PID', async (t) => {
    const moved = patSection([[2, 0x1012], [3, 0x1003]]) // prettier-ignore
    const ts = new TsBuilder().sections(0, patSection([[2, 0x1002]])).sections(0x1002, first)
    ts.sections(0, moved).sections(0x1003, second).sections(0x1003, second)
    t.strictSame(numbers(ts), [2])
    const other = pmtSection(2, 0x210, [{ pid: 0x210, streamType: 0x1b }])
    ts.sections(0x1002, pmtSection(2, 0x220, [AUDIO])).sections(0x1012, other)
    t.match(
      programsOf(demux(ts.bytes)).map(({ pcrPid }) => pcrPid),
      [0x200, 0x210],
    )
  })

  t.test('a program chosen by number is carried even if another has video', async (t) => {
    const ts = new TsBuilder().sections(0, pat).sections(0x1002, first).sections(0x1003, second)
    const choose = (program: ProgramChoice) => {
      const demuxer = new Demuxer({ program })
      return [programsOf(demux(ts.bytes, [188], demuxer)), demuxer.programNumbers]
    }
    t.match(choose(3), [[{ programNumber: 3, tracks: [{ codec: 'h265' }] }], [1, 2, 3]])
    t.strictSame(choose(1), [[], [1, 2, 3]], 'nothing is carried in its place')
    t.strictSame(choose(4), [[], [1, 2, 3]])
  })

  t.test(
    'joined programs have number and PCR PID of the first, and the tracks of all',
    async (t) => {
      const all = (ts: TsBuilder) =>
        demux(ts.bytes, [188], new Demuxer({ program: 'all' })).flatMap((output) =>
          output.type !== 'program'
            ? []
            : [
                {
                  ...{ number: output.program.programNumber, pcrPid: output.program.pcrPid },
                  pids: output.program.tracks.map(({ pid }) => pid),
                  layoutChanged: output.layoutChanged,
                },
              ],
        )
      const ts = new TsBuilder().sections(0, pat).sections(0x1002, first).sections(0x1003, second)
      t.strictSame(all(ts), [], 'the third is waited for')
      ts.sections(0x1003, second).sections(0x1002, first)
      const two = { number: 2, pcrPid: 0x200, pids: [0x200, 0x300], layoutChanged: false }
      t.strictSame(all(ts), [two], 'until another comes round again')
      ts.sections(0x1001, radio).sections(0x1001, radio)
      const three = {
        number: 1,
        pcrPid: 0x101,
        pids: [AUDIO.pid, 0x200, 0x300],
        layoutChanged: true,
      }
      t.strictSame(all(ts), [two, three])
      ts.sections(0, patSection([[3, 0x1003]])).sections(0x1003, second)
      const one = { number: 3, pcrPid: 0x300, pids: [0x300], layoutChanged: true }
      t.strictSame(all(ts), [two, three, one], 'a program that the PAT drops goes')
      const shared = pmtSection(3, 0x300, [{ pid: 0x300, streamType: 0x24 }, AUDIO])
      ts.sections(0x1003, shared).sections(0, pat).sections(0x1001, radio)
      t.match(all(ts).at(-1), { number: 1, pids: [AUDIO.pid, 0x300] }, 'each PID once')
    },
  )

  t.test('joined programs are limited in streams', async (t) => {
    const numbers = Array.from({ length: 10 }, (_, index) => index + 1)
    const ts = new TsBuilder().sections(0, patSection(numbers.map((it) => [it, 0x1000 + it])))
    for (const number of numbers) {
      const pids = Array.from({ length: 100 }, (_, index) => number * 100 + index)
      const streams = pids.map((pid) => ({ pid, streamType: 0x0f }))
      ts.sections(0x1000 + number, pmtSection(number, 100, streams))
    }
    const [program] = programsOf(demux(ts.bytes, [188], new Demuxer({ program: 'all' })))
    t.strictSame(
      program?.tracks.map(({ pid }) => pid),
      Array.from({ length: 300 }, (_, index) => 100 + index),
    )
  })

  t.test('units of joined programs are on one timeline', async (t) => {
    const ts = new TsBuilder().sections(0, patSection([[2, 0x1002], [3, 0x1003]])) // prettier-ignore
    ts.sections(0x1002, first).sections(0x1003, second)
    for (const pid of [0x200, 0x300]) ts.unit(pid, videoPes(1, 2 ** 33 - 3000))
    for (const pid of [0x200, 0x300]) ts.unit(pid, videoPes(2, 3000))
    const units = unitsOf(demux(ts.bytes, [188], new Demuxer({ program: 'all' })))
    t.strictSame(
      units.map(({ track, ptsTicks }) => [track.pid, ptsTicks - 2 ** 33]),
      [
        [0x200, -3000],
        [0x300, -3000],
        [0x200, 3000],
        [0x300, 3000],
      ],
    )
  })

  t.test('a PAT of several sections is read completely (2.4.4.5)', async (t) => {
    const section = (sectionNumber: number, lastSectionNumber: number, version = 0) =>
      patSection(
        Array.from({ length: 200 }, (_, index) => {
          const number = sectionNumber * 200 + index + 1
          return [number, 0x1000 + number] as const
        }),
        { sectionNumber, lastSectionNumber, version },
      )
    const late = (number: number, streamType: number) => (ts: TsBuilder) =>
      ts.sections(0x1000 + number, pmtSection(number, 0x100, [{ pid: 0x100, streamType }]))
    const carried = (ts: TsBuilder, program: ProgramChoice = 'first') => {
      const demuxer = new Demuxer({ program })
      const programs = programsOf(demux(ts.bytes, [188], demuxer))
      return [programs.map((it) => it.programNumber), demuxer.programNumbers.length]
    }
    const ts = new TsBuilder().sections(0, section(1, 2)).sections(0, section(0, 2))
    late(2, 0x0f)(late(2, 0x0f)(ts))
    t.strictSame(carried(ts), [[], 0], 'a third is missing')
    ts.sections(0, section(2, 2))
    late(2, 0x0f)(late(550, 0x1b)(ts))
    t.strictSame(carried(ts), [[], 600], 'the maps of 598 are')
    late(2, 0x0f)(ts)
    t.strictSame(carried(ts), [[550], 600], 'the one with video')
    t.strictSame(carried(ts, 2), [[2], 600], 'or any of them')

    ts.sections(0, section(0, 1, 1))
    t.strictSame(carried(ts), [[550], 600], 'a new version counts when it is whole')
    ts.sections(0, section(1, 1, 1))
    late(2, 0x0f)(late(2, 0x0f)(ts))
    t.strictSame(carried(ts), [[550, 2], 400])
  })

  t.test('a PAT is read up to its eighth section', async (t) => {
    const ts = new TsBuilder()
    for (let sectionNumber = 0; sectionNumber < 256; sectionNumber++) {
      const number = sectionNumber + 1
      ts.sections(0, patSection([[number, 0x1002]], { sectionNumber, lastSectionNumber: 255 }))
    }
    const demuxer = new Demuxer()
    demux(ts.bytes, [188], demuxer)
    t.strictSame(demuxer.programNumbers, [1, 2, 3, 4, 5, 6, 7, 8])
  })

  t.test('a repeated PAT section ends the wait for missing ones', async (t) => {
    const broken = patSection([[2, 0x1002]], { lastSectionNumber: 3 })
    const ts = new TsBuilder().sections(0, broken).sections(0x1002, first)
    t.strictSame(numbers(ts), [])
    t.strictSame(numbers(ts.sections(0, broken).sections(0x1002, first)), [2])
    const impossible = patSection([[2, 0x1002]], { sectionNumber: 2, lastSectionNumber: 1 })
    t.strictSame(numbers(new TsBuilder().sections(0, impossible).sections(0x1002, first)), [])
  })
})

t.test('late, damaged and repeated program maps', async (t) => {
  const pmt = pmtSection(1, 0x100, [VIDEO])
  const frame = (index: number) => videoPes(index, index * 3000)
  const times = (ts: TsBuilder) => unitsOf(demux(ts.bytes)).map(({ ptsTicks }) => ptsTicks / 3000)

  t.test(
    'PES packets before the program map are dropped, those after it are carried',
    async (t) => {
      const ts = new TsBuilder().sections(0, patSection([[1, 0x1000]]))
      for (let index = 0; index < 60; index++) ts.unit(0x100, frame(index))
      ts.sections(0x1000, pmt).unit(0x100, frame(60)).unit(0x100, frame(61))
      t.strictSame(times(ts), [60, 61])
    },
  )

  t.test(
    'a program map with a wrong CRC_32 is counted, and the next valid one is used',
    async (t) => {
      const broken = Buffer.from(pmt)
      broken[12]! ^= 0xff
      const demuxer = new Demuxer()
      const ts = new TsBuilder().sections(0, patSection([[1, 0x1000]]))
      ts.sections(0x1000, broken).unit(0x100, frame(0))
      t.strictSame(demux(ts.bytes), [])
      ts.sections(0x1000, pmt).unit(0x100, frame(1)).sections(0x1000, broken)
      ts.unit(0x100, frame(2))
      const outputs = demux(ts.bytes, [188], demuxer)
      t.strictSame(
        unitsOf(outputs).map(({ ptsTicks }) => ptsTicks / 3000),
        [1, 2],
      )
      t.match(demuxer.stats, { psiCrcErrors: 2, pmtSections: 1 })
    },
  )

  t.test('a new version_number with the same content changes nothing', async (t) => {
    const ts = new TsBuilder()
    for (let version = 0; version < 32; version++) {
      ts.sections(0, patSection([[1, 0x1000]], { version }))
      ts.sections(0x1000, pmtSection(1, 0x100, [VIDEO], { version }))
      ts.unit(0x100, frame(version))
    }
    const outputs = demux(ts.bytes)
    const layouts = outputs.filter((it) => it.type === 'program' && it.layoutChanged)
    t.strictSame(layouts, [])
    t.equal(unitsOf(outputs).length, 32)
    t.equal(unitsOf(outputs).filter(({ damaged }) => damaged).length, 0)
  })
})

t.test('changes of the carried program', async (t) => {
  const pmt = (...streams: Parameters<typeof pmtSection>[2]) => pmtSection(1, 0x100, streams)
  const start = () =>
    new TsBuilder().program([VIDEO]).unit(0x100, videoPes(1, 3000)).unit(0x100, videoPes(2, 6000))

  t.test('an open PES packet on a remaining PID is put out before the change', async (t) => {
    const ts = start().sections(0x1000, pmt(VIDEO, AUDIO)).unit(0x100, videoPes(3, 9000))
    ts.unit(0x101, audioPes(1, 9000))
    t.strictSame(summary(demux(ts.bytes)), [
      'program',
      'video 3000',
      'video 6000',
      'program changed',
      'audio 9000',
      'video 9000',
    ])
  })

  t.test('a packet lost around a program change is detected', async (t) => {
    const ts = start().sections(0x1000, pmt(VIDEO, AUDIO))
    const { packets } = ts.unit(0x100, videoPes(3, 9000))
    t.strictSame(summary(demux(Buffer.concat(packets.toSpliced(7, 1)))), [
      'program',
      'video 3000',
      'video 6000 damaged',
      'program changed',
      'video 9000',
    ])
  })

  t.test('an open PES packet on a PID that vanishes or changes its codec is flushed', async (t) => {
    const hevc = { pid: 0x100, streamType: 0x24 }
    const ts = start().sections(0x1000, pmt(hevc)).unit(0x100, videoPes(3, 9000))
    const outputs = demux(ts.bytes)
    t.strictSame(summary(outputs), [
      'program',
      'video 3000',
      'video 6000',
      'program changed',
      'video 9000',
    ])
    t.strictSame(
      unitsOf(outputs).map(({ track }) => track.codec),
      ['h264', 'h264', 'h265'],
    )
  })

  t.test('an added descriptor makes a new program with the same layout', async (t) => {
    const descriptors = Buffer.from([0x0a, 4, 0x65, 0x6e, 0x67, 0])
    const ts = new TsBuilder().program([AUDIO]).unit(0x101, audioPes(1, 3000))
    ts.sections(0x1000, pmt({ ...AUDIO, descriptors })).unit(0x101, audioPes(2, 6000))
    const outputs = demux(ts.bytes)
    t.strictSame(summary(outputs), ['program', 'audio 3000', 'program', 'audio 6000'])
    t.equal(unitsOf(outputs)[1]?.track.language, 'eng')
  })

  t.test('another video size in the bitstream changes the layout', async (t) => {
    const small = readFixture('h264-open-gop')
    const large = readFixture('demo').subarray(0, 400 * 188)
    const outputs = demux(Buffer.concat([small, large]))
    const sizes = outputs.flatMap((output) =>
      output.type === 'program' && output.program.tracks[0]?.parameters !== undefined
        ? [[output.layoutChanged, output.program.tracks[0].parameters.width]]
        : [],
    )
    t.strictSame(sizes[0], [false, 160])
    t.ok(sizes.some(([changed, width]) => changed === true && width === 640))
  })
})

t.test('time', async (t) => {
  const times = (outputs: readonly DemuxerOutput[]) =>
    unitsOf(outputs).map(({ ptsTicks, dtsTicks }) => [ptsTicks, dtsTicks])
  const WRAP = 2 ** 33

  t.test('a PES packet without DTS has its PTS as decoding time (2.4.3.7)', async (t) => {
    const ts = new TsBuilder().program([VIDEO])
    ts.unit(0x100, pesPacket(frame(1), { ptsTicks: 9000, dtsTicks: 3000 }))
    ts.unit(0x100, pesPacket(frame(1), { ptsTicks: 6000 }))
    t.strictSame(times(demux(ts.bytes)), [
      [9000, 3000],
      [6000, 6000],
    ])
  })

  t.test('PTS and DTS of all tracks are unwrapped together past 33 bits', async (t) => {
    const ts = new TsBuilder().program(BOTH)
    ts.unit(0x101, audioPes(1, 100))
    ts.unit(0x101, audioPes(2, WRAP - 200))
    ts.unit(0x100, pesPacket(frame(1), { ptsTicks: WRAP + 500, dtsTicks: WRAP - 100 }))
    ts.unit(0x101, audioPes(3, WRAP + 300))
    t.strictSame(times(demux(ts.bytes)), [
      [100, 100],
      [-200, -200],
      [500, -100],
      [300, 300],
    ])
    const forward = new TsBuilder().program([AUDIO])
    for (let i = 0; i < 6; i++) forward.unit(0x101, audioPes(i, WRAP * i * 0.4))
    t.strictSame(
      times(demux(forward.bytes)).map(([pts]) => Math.round(pts! / WRAP / 0.4)),
      [0, 1, 2, 3, 4, 5],
    )
  })

  t.test('a timestamp jump of the source is a jump of the units', async (t) => {
    const ts = new TsBuilder().program([AUDIO])
    const sent = [0, 90_000_000, 90_003_000, 3000, 6000]
    for (const ptsTicks of sent) ts.unit(0x101, audioPes(1, ptsTicks))
    t.strictSame(
      times(demux(ts.bytes)).map(([pts]) => pts),
      sent,
    )
  })

  t.test(
    'a PES packet without PTS takes the latest time of its track, else of the program; a frame goes on by its duration',
    async (t) => {
      const klv = { pid: 0x102, streamType: 0x06 }
      const ts = new TsBuilder().program([...BOTH, klv])
      ts.unit(0x101, pesPacket(Buffer.alloc(100), { streamId: 0xc0 }))
      ts.unit(0x100, pesPacket(frame(1), { ptsTicks: 9000, dtsTicks: 3000 }))
      ts.unit(0x100, pesPacket(frame(2)))
      ts.unit(0x101, audioPes(1, 12_000))
      ts.unit(0x102, pesPacket(Buffer.alloc(10), { streamId: 0xbd }))
      const demuxer = new Demuxer()
      t.strictSame(times(demux(ts.bytes, undefined, demuxer)), [
        [9000, 3000],
        [12_000, 12_000],
        [12_000, 12_000],
        [12_600, 6600],
      ])
      t.match(demuxer.stats, { pesWithoutPts: 2, units: 4 })
    },
  )

  t.test('timestamps of a data track do not affect other tracks', async (t) => {
    const data = { pid: 0x102, streamType: 0x15 }
    const ts = new TsBuilder().program([AUDIO, data])
    ts.unit(0x101, audioPes(1, 3000))
    ts.unit(0x102, pesPacket(Buffer.alloc(10), { ptsTicks: 3000 + WRAP / 2 - 10, streamId: 0xbd }))
    ts.unit(0x101, audioPes(1, 6000))
    t.strictSame(
      times(demux(ts.bytes)).map(([pts]) => pts),
      [3000, 3000 + WRAP / 2 - 10, 6000],
    )
  })
})

t.test('hostile input', async (t) => {
  t.test('a PES packet without end is dropped at 8 MiB, and the next one is intact', async (t) => {
    const demuxer = new Demuxer()
    demuxer.push(new TsBuilder().program([VIDEO]).unit(0x100, videoPes(1, 3000)).bytes)
    const body = Array.from({ length: 16 }, (_, i) =>
      tsPacket({ pid: 0x100, counter: i + 3, payload: Buffer.alloc(184) }),
    )
    const bytes = Buffer.concat(body)
    let outputs = 0
    for (let packets = 0; packets * 188 < 20 * 1024 * 1024; packets += 16) {
      outputs += demuxer.push(bytes).length
    }
    t.equal(outputs, 0)
    t.match(demuxer.stats, { oversizedPes: 1, units: 0, continuityErrors: 0 })
    const next = { pid: 0x100, payload: videoPes(2, 6000, 100), unitStart: true, counter: 3 }
    demuxer.push(tsPacket(next))
    t.strictSame(summary(demuxer.end()), ['video 6000'])
  })

  t.test(
    'a PES packet of audio is dropped at 128 KiB; the longest legal one is kept',
    async (t) => {
      const audio = { pid: 0x101, streamType: 0x0f }
      const longest = pesPacket(adtsFrames(8, 8190), { ptsTicks: 0, streamId: 0xc0 })
      t.equal(longest.length, 65_534)
      const endless = pesPacket(adtsFrames(8, 8190), {
        ptsTicks: 3000,
        streamId: 0xc0,
        length: 'none',
      })
      const ts = new TsBuilder().program([VIDEO, audio])
      ts.unit(0x101, longest)
      // In each packet, an adaptation field takes half of the room.
      for (let at = 0; at < longest.length; at += 95) {
        ts.packet({ pid: 0x101, payload: longest.subarray(at, at + 95), unitStart: at === 0 })
      }
      ts.unit(0x101, endless)
      for (let count = 0; count < 400; count++)
        ts.packet({ pid: 0x101, payload: Buffer.alloc(184) })
      ts.unit(0x101, longest)
      const demuxer = new Demuxer()
      t.equal(unitsOf(demux(ts.bytes, undefined, demuxer)).length, 3)
      t.match(demuxer.stats, { oversizedPes: 1, damagedUnits: 0 })
      t.equal(demuxer.openBytes, 0)
    },
  )

  t.test('a PES packet without end does not affect other tracks', async (t) => {
    const data = { pid: 0x102, streamType: 0x15 }
    const ts = new TsBuilder().program([VIDEO, data])
    ts.unit(0x102, pesPacket(Buffer.alloc(10), { ptsTicks: 0, streamId: 0xbd, length: 'none' }))
    const room = Math.floor((8 * 1024 * 1024) / 188) - 20
    for (let i = 0; i < room; i++) ts.packet({ pid: 0x102, payload: Buffer.alloc(184) })
    for (let i = 0; i < 10; i++) ts.unit(0x100, videoPes(i, 3000 * i, 184 * 40))
    const demuxer = new Demuxer()
    const frames = unitsOf(demuxer.push(ts.bytes), 0x100)
    t.equal(frames.length, 9, 'all but the one that is open')
    t.match(demuxer.stats, { oversizedPes: 1, damagedUnits: 0 })
  })

  t.test('the limit of held bytes does not count completed PES packets', async (t) => {
    const demuxer = new Demuxer()
    demuxer.push(new TsBuilder().program([VIDEO]).bytes)
    const frames = new TsBuilder()
    for (let i = 0; i < 16; i++) frames.unit(0x100, videoPes(i, 3000, 184 * 1000 - 20))
    for (let turn = 0; turn < 5; turn++) demuxer.push(frames.bytes)
    t.match(demuxer.stats, { oversizedPes: 0, units: 79, damagedUnits: 0 })
  })

  t.test('payload without a PES header is dropped up to the next start', async (t) => {
    const ts = new TsBuilder().program([VIDEO]).unit(0x100, Buffer.alloc(500, 7))
    ts.unit(0x100, videoPes(2, 6000))
    const demuxer = new Demuxer()
    t.strictSame(summary(demux(ts.bytes, undefined, demuxer)), ['program', 'video 6000'])
    t.match(demuxer.stats, { malformedPes: 1, orphanPackets: 2 })
  })

  t.test('sections on the PID of a track are not taken for PES packets', async (t) => {
    const sections = { pid: 0x102, streamType: 0x05 }
    const ts = new TsBuilder().program([AUDIO, sections])
    ts.sections(0x102, Buffer.from([0xfc, 0x30, 0x11, ...Buffer.alloc(17)]))
    ts.unit(0x101, audioPes(1, 3000))
    const demuxer = new Demuxer()
    const outputs = demux(ts.bytes, undefined, demuxer)
    t.strictSame(summary(outputs), ['program', 'audio 3000'])
    t.equal(programsOf(outputs)[0]?.tracks[1]?.kind, 'data')
    t.equal(demuxer.stats.malformedPes, 0)
  })

  t.test('codec parameters of a damaged PES packet are ignored', async (t) => {
    const clip = readFixture('h264-aac')
    const packets = Array.from({ length: clip.length / 188 }, (_, i) =>
      clip.subarray(i * 188, (i + 1) * 188),
    )
    // The first key frame holds the only parameter sets up to unit 15; its second packet is lost.
    const video = packets.filter((packet) => (packet.readUInt16BE(1) & 0x1fff) === 0x100)
    const outputs = demux(Buffer.concat(packets.filter((packet) => packet !== video[1])))
    const known = outputs.findIndex(
      (output) => output.type === 'program' && output.program.tracks[0]!.parameters !== undefined,
    )
    const before = unitsOf(outputs.slice(0, known), 0x100)
    t.equal(before.length, 15)
    t.match(before[0], { damaged: true, randomAccess: true })
  })

  t.test('a bounded PES packet cut off by the end of the stream is damaged', async (t) => {
    const ts = new TsBuilder().program([AUDIO]).unit(0x101, audioPes(1, 3000))
    const outputs = demux(Buffer.concat(ts.packets.slice(0, -1)))
    t.strictSame(summary(outputs), ['program', 'audio 3000 damaged'])
  })

  t.test('it is damaged even if lengths on its PID were too short', async (t) => {
    const ts = new TsBuilder().program([AUDIO])
    ts.unit(0x101, pesPacket(frame(1, 1000), { ptsTicks: 3000, length: 100 }))
    ts.unit(0x101, audioPes(2, 6000))
    const outputs = demux(Buffer.concat(ts.packets.slice(0, -1)))
    t.strictSame(summary(outputs), ['program', 'audio 3000', 'audio 6000 damaged'])
  })

  t.test('payload behind the end proves no length wrong: a PES start may be lost', async (t) => {
    const ts = new TsBuilder().program([AUDIO]).unit(0x101, audioPes(1, 3000))
    const before = ts.bytes
    ts.packet({ pid: 0x101, payload: Buffer.alloc(184) }).unit(0x101, audioPes(3, 9000, 1000))
    const demuxer = new Demuxer()
    demuxer.push(before)
    demuxer.end()
    t.strictSame(summary(demuxer.push(ts.bytes.subarray(before.length))), ['audio 9000'])
  })
})

/** Private descriptors of a given total size. */
function padding(sizeBytes: number): Buffer {
  const parts: Buffer[] = []
  for (let left = sizeBytes; left >= 2; left -= 257) {
    const length = Math.min(255, left - 2)
    parts.push(Buffer.from([0xfe, length]), Buffer.alloc(length))
  }
  return Buffer.concat(parts)
}

t.test('labels and stream types of tracks', async (t) => {
  const registered = (format: string) => Buffer.concat([Buffer.from([5, 4]), Buffer.from(format)])
  const language = Buffer.from([0x0a, 4, 0x66, 0x72, 0x61, 0])
  const klv = Buffer.concat([
    Buffer.from([0x26, 9, 1, 0, 0xff]),
    Buffer.from('KLVA'),
    Buffer.alloc(2),
  ])
  const ac3 = Buffer.concat([Buffer.from([0x6a, 1, 0]), language])
  const opus = (channels: number | undefined) => {
    const rate = { codecString: 'opus', sampleRate: 48_000 }
    return { parameters: channels === undefined ? rate : { ...rate, channels } }
  }
  const cases: [number, Buffer, Partial<Track>][] = [
    [
      0x06,
      ac3,
      {
        ...{ codec: 'ac3', kind: 'audio', streamType: 0x81, language: 'fra' },
        descriptors: Buffer.concat([registered('AC-3'), ac3]),
      },
    ],
    [0x06, Buffer.from([0x7a, 1, 0]), { codec: 'eac3', streamType: 0x87 }],
    [0x06, registered('AC-3'), { codec: 'ac3', streamType: 0x81, descriptors: registered('AC-3') }],
    [0x81, language, { codec: 'ac3', streamType: 0x81, descriptors: language }],
    [0x06, registered('Opus'), { codec: 'opus', kind: 'audio', streamType: 0x06, ...opus(2) }],
    [0x06, Buffer.concat([registered('Opus'), Buffer.from([0x7f, 2, 0x80, 6])]), opus(6)],
    [0x06, Buffer.concat([registered('Opus'), Buffer.from([0x7f, 2, 0x80, 0])]), opus(undefined)],
    [0x06, Buffer.from([0x56, 0]), { codec: 'unknown', kind: 'data', label: 'teletext' }],
    [0x06, Buffer.from([0x59, 0]), { label: 'DVB subtitles' }],
    [0x06, registered('KLVA'), { label: 'KLV metadata' }],
    [0x15, klv, { label: 'KLV metadata' }],
    [0x15, registered('ID3 '), { label: 'ID3 metadata' }],
    [0x02, Buffer.alloc(0), { kind: 'data', label: 'MPEG-2 video' }],
    [0x06, registered('????'), { kind: 'data', label: undefined }],
    [0x1b, registered('HDMV'), { kind: 'video', label: undefined }],
  ]
  for (const [streamType, descriptors, expected] of cases) {
    const { bytes } = new TsBuilder().program([{ pid: 0x101, streamType, descriptors }])
    const [track] = programsOf(demux(bytes))[0]!.tracks
    t.match(track, expected, `stream type ${streamType}, ${descriptors.toString('hex')}`)
  }
})

/** PCR of an adaptation field behind its flags (ISO/IEC 13818-1 2.4.3.5). */
function pcrOf(ticks: number): Buffer {
  const field = Buffer.alloc(6)
  field.writeUInt32BE(ticks / 2)
  return field
}

t.test(
  'AAC tells in its headers the channels that a program_config_element has told once',
  async (t) => {
    const payloads = [programConfig('12 2L'), Buffer.alloc(0)].map((element) => {
      const bytes = adtsFrames(3)
      for (let at = 0; at < bytes.length; at += 64) {
        bytes[at + 2]! &= 0xfe
        bytes[at + 3]! &= 0x3f
      }
      element.copy(bytes, 7)
      return bytes
    })
    const ts = new TsBuilder().program([AUDIO])
    for (const [index, payload] of payloads.entries()) {
      const pes = pesPacket(payload, { ptsTicks: index * 5760, streamId: 0xc0 })
      ts.unit(AUDIO.pid, pes, { adaptationFlags: 0x10, adaptation: pcrOf(index * 5760) })
    }
    const outputs = demux(ts.bytes)
    t.match(programsOf(outputs).at(-1)!.tracks[0]!.parameters, { channels: 6 })
    const heads = unitsOf(outputs).map(({ chunks }) => readPcr(chunks[0]!, 0))
    t.strictSame(heads, [0, 5760], 'with their clock')
    const sent = Buffer.concat(payloads)
    const told = Buffer.concat(unitsOf(outputs).map(({ payload }) => payload))
    const changes = [...told.entries()].flatMap(([at, byte]) =>
      byte === sent[at] ? [] : [byte ^ sent[at]!],
    )
    // channel_configuration 6 in its place, in six headers.
    t.strictSame(changes, Array.from({ length: 6 }, () => [0x01, 0x80]).flat())
    t.ok(unitsOf(outputs).every((unit) => unit.payload.equals(payloadOf(unit))))
  },
)

t.test('a frame before a pause of the video is not held until its end', async (t) => {
  const demuxer = new Demuxer()
  const push = (ts: TsBuilder) => summary(demuxer.push(ts.bytes))
  const ts = () => new TsBuilder()
  push(ts().program(BOTH))
  // The end of its last packet is stuffing: it seems to be complete.
  t.same(push(ts().unit(AUDIO.pid, audioPes(2, 90_000))), ['program', 'audio 90000'])
  t.same(push(ts().unit(VIDEO.pid, videoPes(1, 90_000))), [])
  t.same(push(ts().unit(AUDIO.pid, audioPes(2, 180_000))), ['audio 180000'])
  t.same(push(ts().unit(AUDIO.pid, audioPes(2, 180_001))), ['audio 180001', 'video 90000'])
  t.same(push(ts().unit(VIDEO.pid, videoPes(3, 810_000))), [])
})
