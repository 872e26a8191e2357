/**
 * A Redis in memory for the real client: as much of the protocol as backups need.
 *
 * @module
 */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

interface List {
  readonly chunks: readonly Buffer[]
  /** Lifetime that was set last, in milliseconds; undefined: for ever. */
  readonly ttlMs?: number
}

type Reply = string | number | readonly Reply[] | readonly Buffer[]

export class MemoryRedis {
  readonly lists = new Map<string, List>()
  /** Names of the commands so far, without those of a connection. */
  readonly commands: string[] = []
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isCut = false

  constructor() {
    this.#server = createServer((socket) => {
      if (this.#isCut) {
        socket.destroy()
        return
      }
      this.#sockets.add(socket)
      socket.on('error', () => undefined)
      this.#serve(socket)
    })
  }

  async listen(t: Test): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => {
      this.cut()
      this.#server.close()
    })
    return this
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Answers nothing, until `resume`. */
  pause(): void {
    for (const socket of this.#sockets) socket.pause()
  }

  resume(): void {
    for (const socket of this.#sockets) socket.resume()
  }

  /** Ends all connections, and takes none until `mend`. */
  cut(): void {
    this.#isCut = true
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }

  mend(): void {
    this.#isCut = false
  }

  #serve(socket: Socket): void {
    let rest: Buffer = Buffer.alloc(0)
    let transaction: Buffer[][] | undefined
    socket.on('data', (data) => {
      rest = Buffer.concat([rest, data])
      for (;;) {
        const parsed = parseCommand(rest)
        if (parsed === undefined) return
        rest = rest.subarray(parsed.end)
        const name = String(parsed.args[0])
        if (name === 'MULTI') {
          transaction = []
          socket.write(encode('OK'))
        } else if (name === 'EXEC') {
          const replies = (transaction ?? []).map((args) => this.#run(args))
          this.commands.push('EXEC')
          transaction = undefined
          socket.write(encode(replies))
        } else if (transaction === undefined) socket.write(encode(this.#run(parsed.args)))
        else {
          transaction.push([...parsed.args])
          socket.write(encode('QUEUED'))
        }
      }
    })
  }

  #run([command, keyBytes, ...args]: readonly Buffer[]): Reply {
    const name = String(command)
    const key = String(keyBytes)
    const list = this.lists.get(key)
    if (['CLIENT', 'SELECT', 'SETRANGE'].includes(name)) return name === 'SETRANGE' ? 0 : 'OK'
    this.commands.push(`${name} ${key}`)
    switch (name) {
      case 'DEL':
        return Number(this.lists.delete(key))
      case 'RPUSH':
        this.lists.set(key, { ...list, chunks: [...(list?.chunks ?? []), ...args] })
        return args.length
      case 'PEXPIRE':
        if (list === undefined) return 0
        this.lists.set(key, { ...list, ttlMs: Number(args[0]) })
        return 1
      case 'LRANGE':
        return list?.chunks ?? []
      default:
        throw new Error(`${name} is not known here`)
    }
  }
}

/** @returns undefined unless all of it is there */
function parseCommand(bytes: Buffer): { args: readonly Buffer[]; end: number } | undefined {
  let at = 0
  const number = (): number | undefined => {
    const end = bytes.indexOf('\r\n', at)
    if (end < 0) return undefined
    const value = Number(bytes.subarray(at + 1, end))
    at = end + 2
    return value
  }
  const count = number()
  if (count === undefined) return undefined
  const args: Buffer[] = []
  while (args.length < count) {
    const length = number()
    if (length === undefined || at + length + 2 > bytes.length) return undefined
    args.push(bytes.subarray(at, at + length))
    at += length + 2
  }
  return { args, end: at }
}

function encode(reply: Reply | Buffer): Buffer {
  if (typeof reply === 'string') return Buffer.from(`+${reply}\r\n`)
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`)
  const end = Buffer.from('\r\n')
  if (Buffer.isBuffer(reply))
    return Buffer.concat([Buffer.from(`$${reply.length}\r\n`), reply, end])
  return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map((each) => encode(each))])
}
