/**
 * nginx as a cache before the service, set up as docs/low-latency.md says, and with an `Age` as other caches send it.
 *
 * @module
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../../support/free-port.ts'
import { start } from '../../support/process.ts'
import { until } from '../../support/until.ts'

/** Starts nginx; it ends with the test. @returns its base URL */
export async function startNginxCache(t: Test, upstream: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  // The worker of a root process has another user.
  chmodSync(folder, 0o755)
  const port = await freePort()
  writeFileSync(join(folder, 'nginx.conf'), configure(folder, port, upstream))
  const { child, output } = start(t, 'nginx', ['-p', folder, '-c', 'nginx.conf'])
  const url = `http://127.0.0.1:${port}`
  await until('nginx answers', () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${output()}`)
    return fetch(url).then(
      () => true,
      () => false,
    )
  })
  return url
}

function configure(folder: string, port: number, upstream: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log stderr;
events { worker_connections 256; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  access_log off;
  proxy_cache_path ${folder}/cache keys_zone=hls:1m max_size=100m;
  map_hash_max_size 8192;
  map_hash_bucket_size 64;
  map $time_iso8601 $now_sec { "~:(?<sec>\\d\\d)[+-]" $sec; }
  map $upstream_http_date $date_sec { "~:(?<date>\\d\\d) GMT" $date; }
  map "$upstream_cache_status $date_sec $now_sec" $age {
    ${agesInSeconds().join('\n    ')}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout 15s;
      proxy_cache hls;
      proxy_cache_key $uri?$arg__HLS_msn&$arg__HLS_part&$arg__HLS_skip;
      proxy_pass_header Date;
      add_header Age $age;
      add_header X-Cache $upstream_cache_status;
    }
  }
}
`
}

/** Age of a hit by the seconds of Date and of now: nginx cannot subtract, and no reply is cached for a minute. */
function agesInSeconds(): string[] {
  const seconds = Array.from({ length: 60 }, (_, sec) => sec)
  const print = (sec: number) => `${sec}`.padStart(2, '0')
  return seconds.flatMap((from) =>
    seconds.map((age) => `"HIT ${print(from)} ${print((from + age) % 60)}" ${age};`),
  )
}
