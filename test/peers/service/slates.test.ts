/**
 * The commands with which docs/sources.md makes a slate, as written.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { Slates } from '../../../src/service/slates.ts'
import { inspect, play, stepsOf } from '../../pace/loop-clips.ts'
import { requireTool } from '../support/tools.ts'

const run = promisify(execFile)
const PAGE = new URL('../../../docs/sources.md', import.meta.url)

t.test('slates that are made as docs/sources.md says loop without a gap', async (t) => {
  if (!requireTool(t, 'ffmpeg')) return
  const folder = t.testdir({})
  const make = (...args: string[]) => run('ffmpeg', ['-v', 'error', ...args], { cwd: folder })
  await make('-f', 'lavfi', '-i', 'testsrc2=s=640x360', '-frames:v', '1', 'slate.png')
  const film = ['-f', 'lavfi', '-i', 'testsrc2=s=640x360:r=25:d=6', '-f', 'lavfi', '-i', 'sine=d=4']
  await make(...film, '-c:v', 'libx264', '-c:a', 'aac', 'film.mp4')
  const page = readFileSync(PAGE, 'utf8')
  const commands = Array.from(page.matchAll(/```sh\n(ffmpeg[^]*?)```/g), ([, text]) => text!)
  t.equal(commands.length, 2)
  for (const command of commands) {
    await run('bash', ['-c', command.replace('ffmpeg', 'ffmpeg -v error -y')], { cwd: folder })
    const slates = new Slates(folder)
    await slates.load('slate.ts')
    const { times, discontinuities } = inspect(t, play(slates.get('slate.ts')!, 25))
    t.equal(discontinuities, 0)
    t.same(stepsOf(times('video')), [3000])
    t.same(stepsOf(times('audio')), [1920])
  }
})
