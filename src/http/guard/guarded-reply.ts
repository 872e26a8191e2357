/**
 * Node's reply, which tells the gate of its connection when it begins and when the kernel has all of it.
 *
 * @module
 */
import { ServerResponse } from 'node:http'

export type GuardedReply = ServerResponse & {
  /** What it sends, where that is one buffer: perhaps a segment that other connections send as well. */
  readonly body: Buffer | undefined
}

export interface ReplyWatcher {
  /** A request was parsed, and this will answer it. */
  begin(reply: GuardedReply): void
  /** The kernel has all of it. Never told where the connection ends before. */
  finish(reply: GuardedReply): void
}

/** For the option `ServerResponse` of `node:http`: so none is missed, those that Node itself answers included. */
export function guardedReplies(watcher: ReplyWatcher): typeof ServerResponse {
  return class extends ServerResponse {
    body: Buffer | undefined

    constructor(...args: ConstructorParameters<typeof ServerResponse>) {
      super(...args)
      watcher.begin(this)
      this.once('finish', () => watcher.finish(this))
    }

    override end(...args: unknown[]): this {
      if (Buffer.isBuffer(args[0])) this.body = args[0]
      return super.end(...(args as [unknown, BufferEncoding]))
    }
  } as typeof ServerResponse
}
