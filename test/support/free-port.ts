/**
 * Ports for programs that cannot choose one themselves. The kernel gives sockets bound to port 0, and outgoing
 * connections, ports from 32768 up: below that, none is taken between the choice and the start of the program.
 *
 * @module
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once, type EventEmitter } from 'node:events'
import { createServer } from 'node:net'

const PORTS = { first: 20_000, count: 6000 }

/** A TCP and UDP port that nothing uses; no other call returns it until this process ends. */
export function freePort(): Promise<number> {
  return freeRange(1)
}

/** The first of so many ports in a row, each as `freePort` finds it. */
export async function freeRange(count: number): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const first = PORTS.first + randomInt(PORTS.count - count + 1)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if ((await Promise.all(ports.map(take))).every(Boolean)) return first
  }
  throw new Error(`no port is free from ${PORTS.first} to ${PORTS.first + PORTS.count - 1}`)
}

/** @returns whether the port is free, and given to nobody else */
async function take(port: number): Promise<boolean> {
  // Other test files run at the same time; this socket shows them that the port is given away.
  const lock = createServer().unref()
  if (!(await binds(lock.listen(port + PORTS.count, '127.0.0.1')))) return false
  const tcp = createServer()
  const udp = createSocket('udp4')
  const isFree = (await binds(tcp.listen(port, '0.0.0.0'))) && (await binds(udp.bind(port)))
  await Promise.all([closed(tcp), closed(udp)])
  return isFree
}

/** As many ports as `freePort` finds in so many calls. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  while (ports.length < count) ports.push(await freePort())
  return ports
}

/** Whether the socket gets its address. */
function binds(socket: EventEmitter): Promise<boolean> {
  return once(socket, 'listening').then(
    () => true,
    () => false,
  )
}

function closed(socket: { close(done: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => void socket.close(resolve))
}
