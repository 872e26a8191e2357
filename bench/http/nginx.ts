/**
 * nginx that serves files from tmpfs with its fastest settings, as reference for static delivery.
 *
 * @module
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { freePort } from '../../test/support/free-port.ts'
import { until } from '../../test/support/until.ts'
import { startProgram, stopProgram } from '../support/programs.ts'
import type { Contender, TlsFiles } from './contender.ts'
import { exchange } from './exchange.ts'
import type { FileName } from './scenarios.ts'

export interface NginxOptions {
  readonly workers: number
  readonly paths: Readonly<Record<FileName, string>>
  /** Contents by path; `.gz` files are sent to clients that accept gzip. */
  readonly files: Readonly<Record<string, Buffer>>
  readonly tls?: TlsFiles | undefined
}

export async function startNginx(options: NginxOptions): Promise<Contender> {
  const { workers, paths, files, tls } = options
  const port = await freePort()
  const folder = `/dev/shm/millrace-bench-nginx-${port}`
  for (const [path, bytes] of Object.entries(files)) {
    mkdirSync(dirname(`${folder}/files${path}`), { recursive: true })
    writeFileSync(`${folder}/files${path}`, bytes)
  }
  writeFileSync(`${folder}/nginx.conf`, configuration({ folder, port, workers, tls }))
  const program = startProgram('nginx', ['-p', folder, '-c', 'nginx.conf'])
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  await until('nginx listens', () => {
    if (program.exitCode !== null) throw new Error(`nginx ended with ${program.exitCode}`)
    return exchange(origin).catch(() => undefined)
  })
  return {
    name: workers === 1 ? 'nginx' : `nginx-${workers}`,
    origin,
    paths,
    pid: program.pid!,
    stop: async () => {
      await stopProgram(program)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Configuration {
  readonly folder: string
  readonly port: number
  readonly workers: number
  readonly tls: TlsFiles | undefined
}

function configuration({ folder, port, workers, tls }: Configuration): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const listen = tls === undefined ? 'reuseport' : 'ssl http2 reuseport'
  const certificate =
    tls === undefined ? '' : `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};`
  return `
daemon off;
worker_processes ${workers};
pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; }
  access_log off;
  sendfile on;
  tcp_nopush on;
  gzip_static on;
  keepalive_requests 1000000000;
  open_file_cache max=100;
  open_file_cache_valid 60s;
  log_not_found off;
  server {
    listen 127.0.0.1:${port} ${listen};
    ${certificate}
    root ${folder}/files;
  }
}
`
}
