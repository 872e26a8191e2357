/**
 * nginx with one worker that serves files from tmpfs with its fastest settings, as reference for static delivery.
 *
 * @module
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/free-port.ts'
import { startProgram, stopProgram } from '../support/programs.ts'
import { childrenOf } from '../support/usage.ts'

const FOLDER = `/dev/shm/millrace-bench-nginx-${process.pid}`

export interface Nginx {
  readonly url: string
  /** Process id of the worker. */
  readonly pids: readonly number[]
  stop(): Promise<void>
}

/** @param files  contents by name */
export async function startNginx(files: Readonly<Record<string, Buffer>>): Promise<Nginx> {
  mkdirSync(`${FOLDER}/files`, { recursive: true })
  for (const [name, bytes] of Object.entries(files)) writeFileSync(`${FOLDER}/files/${name}`, bytes)
  const port = await freePort()
  writeFileSync(`${FOLDER}/nginx.conf`, configuration(port))
  const program = startProgram('nginx', ['-p', FOLDER, '-c', 'nginx.conf'])
  const url = `http://127.0.0.1:${port}`
  while (!(await answers(url))) {
    if (program.exitCode !== null) throw new Error(`nginx ended with ${program.exitCode}`)
    await sleep(50)
  }
  return {
    url,
    pids: childrenOf(program.pid!),
    stop: async () => {
      await stopProgram(program)
      rmSync(FOLDER, { recursive: true, force: true })
    },
  }
}

function configuration(port: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
worker_processes 1;
pid ${FOLDER}/pid;
error_log ${FOLDER}/error.log;
events { worker_connections 1024; }
http {
  ${temporary.map((name) => `${name}_temp_path ${FOLDER}/${name};`).join('\n  ')}
  types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; }
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=100;
  open_file_cache_valid 60s;
  server {
    listen 127.0.0.1:${port};
    root ${FOLDER}/files;
  }
}
`
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  )
}
