import t from 'tap'
import { misspeltWarnings } from '../../src/config/misspelt-variables.ts'
import { SETTINGS } from '../../src/config/setting-names.ts'

t.test('warns of a variable with a slip, and names the setting that was meant', async (t) => {
  const meant = {
    ...{ HTTP_PROT: 'HTTP_PORT', HTTP_PORTS: 'HTTP_PORT', HMAC_SECRT: 'HMAC_SECRET' },
    ...{ JWT_SECRET_FLIE: 'JWT_SECRET_FILE', LOG_LEVLE: 'LOG_LEVEL', PUBLIC_HOTS: 'PUBLIC_HOST' },
    ...{ SRT_LATENCY: 'SRT_LATENCY_MS', RECONNECT_GRACE: 'RECONNECT_GRACE_SEC' },
    ...{ HTTPPORT: 'HTTP_PORT', HLS_PART__MS: 'HLS_PART_MS', CLUSTER_SECERT: 'CLUSTER_SECRET' },
    ...{ ADMIN_PASSWD: 'ADMIN_PASSWORD', ADMIN_PASSWD_FILE: 'ADMIN_PASSWORD_FILE' },
  }
  for (const [name, setting] of Object.entries(meant)) {
    t.strictSame(misspeltWarnings({ [name]: 's3cret' }), [
      `${name} is no setting, and has no effect. Did you mean ${setting}?`,
    ])
  }
  const [warning, ...others] = misspeltWarnings({ HLS_WINDOW: '6' })
  t.match(warning, /^HLS_WINDOW is no setting, and has no effect\. See `millrace serve --help`/)
  t.strictSame(others, [])
  t.ok(misspeltWarnings({ [`HLS_${'X'.repeat(5000)}`]: '' })[0]!.length <= 160)
})

t.test('says nothing of settings, and of variables of other programs', async (t) => {
  const settings = SETTINGS.flatMap(({ env, hasFile }) => (hasFile ? [env, `${env}_FILE`] : [env]))
  const others = [
    ...['HOME', 'PATH', 'USER', 'HOSTNAME', 'LANG', 'PWD', 'SHLVL', 'TERM', 'TZ', 'PORT', 'HOST'],
    ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'NODE_ENV', 'NODE_OPTIONS'],
    ...['NODE_PATH', 'NODE_VERSION', 'NODE_NAME', 'REDIS_HOST', 'REDIS_PORT', 'REDIS_URI'],
    ...['REDIS_PASSWORD', 'API_KEY', 'API_TOKEN', 'API_URL', 'APP_PORT', 'APP_HOST', 'SMTP_PORT'],
    ...['SMTP_HOST', 'SSH_PORT', 'DB_HOST', 'DB_PORT', 'LOG_DIR', 'LOG_FILE', 'PUBLIC_KEY'],
    ...['TLS_CA', 'SSL_CERT_FILE', 'ADMIN_USER', 'ADMIN_EMAIL', 'JWT_ISSUER', 'CACHE_DIR'],
    ...['SRT_SERVICE_HOST', 'SRT_SERVICE_PORT', 'SRT_SERVICE_PORT_UDP', 'SRT_PORT_10080_UDP'],
    ...['SRT_PORT_1935_UDP_PROTO', 'SRT_PORT_1935_UDP_ADDR', 'HLS_PORT_80_TCP_PORT'],
    ...['MILLRACE_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'KUBERNETES_PORT_443_TCP_ADDR'],
    ...['INVOCATION_ID', 'JOURNAL_STREAM', 'NOTIFY_SOCKET', 'CREDENTIALS_DIRECTORY'],
  ]
  const env = Object.fromEntries([...settings, ...others].map((name) => [name, 'x']))
  t.strictSame(misspeltWarnings(env), [])
})
