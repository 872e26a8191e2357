import t from 'tap'
import { completeSettings } from '../../src/config/complete-settings.ts'
import type { GivenSettings } from '../../src/config/schema.ts'
import { startupGuide } from '../../src/service/startup-guide.ts'

const SECRETS = { hmacSecret: 'h'.repeat(32), jwtSecret: 'j'.repeat(32) }

function guide(
  options: Partial<GivenSettings>,
  program = '/usr/bin/millrace',
  execArgv: string[] = [],
): string {
  const config = completeSettings({ ...SECRETS, public: { host: 'live.example' }, ...options })
  const process = { argv: ['/usr/bin/node', program, 'serve'], execArgv }
  return startupGuide(config, { httpPort: 8080, srtPort: 10080 }, process)
}

t.test('has the URLs, and a command that starts a stream', async (t) => {
  const text = guide({})
  t.match(text, /^ {2}Encoders +srt:\/\/live\.example:10080$/m)
  t.match(text, /^ {2}Browsers +http:\/\/live\.example:8080\/watch\/\{stream_id\}$/m)
  t.match(text, /^ {2}API +http:\/\/live\.example:8080\/api$/m)
  t.match(text, /^ {2}millrace start studio --url http:\/\/127\.0\.0\.1:8080$/m)
  t.notMatch(text, /Dashboard|Metrics/)
})

t.test(
  'the command calls the port that is bound, where flags or the system chose it',
  async (t) => {
    t.match(guide({ http: { port: 0 } }), ' start studio --url http://127.0.0.1:8080\n')
    t.match(guide({ apiPort: 8081 }), ' start studio --url http://127.0.0.1:8081\n')
  },
)

t.test('the command reads the same files of settings, in a checkout', async (t) => {
  const files = {
    '--env-file=/home/me/millrace.env': ['--env-file=/home/me/millrace.env'],
    '--env-file-if-exists ../m.env': ['--env-file-if-exists', '../m.env'],
    "'--env-file=/it'\\''s mine/m.env'": ["--env-file=/it's mine/m.env"],
  }
  for (const [text, given] of Object.entries(files)) {
    const checkout = guide({}, 'dist/cli.js', ['--max-old-space-size=400', ...given])
    t.match(checkout, `\n  node ${text} dist/cli.js start studio --url `)
  }
})

t.test(
  'has the ports of the API and of metrics, the dashboard and tokens, and no secret',
  async (t) => {
    const text = guide({
      apiPort: 8081,
      metrics: { port: 9100 },
      admin: { password: 'p4ssword-p4ssword' },
      playbackSecret: 'k'.repeat(32),
      srt: { passphrase: 'passphrase-passphrase' },
    })
    t.match(text, /^ {2}Dashboard +http:\/\/127\.0\.0\.1:8081\/admin$/m)
    t.match(text, /^ {2}Metrics +http:\/\/127\.0\.0\.1:9100\/metrics$/m)
    t.match(text, '/t/{token}/watch/{stream_id}')
    t.notMatch(text, /p4ssword|kkkk|hhhh|passphrase/)
  },
)
