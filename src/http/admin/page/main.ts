/**
 * Main module of the dashboard: login, the list of streams, and the selected one.
 *
 * @module
 */
import { Announcer } from './announcer.ts'
import { call, hasSession } from './calls.ts'
import { Detail } from './detail.ts'
import { openKick, openStart, openStop, prepareDialogs, startStream } from './dialogs.ts'
import { byId, onPress, setDisabled, setText } from './dom.ts'
import { follow } from './feed.ts'
import { NodeList } from './node-list.ts'
import { Previews } from './previews.ts'
import { StreamList } from './stream-list.ts'
import type { Snapshot } from '../wire.ts'

const EMPTY = 'No streams. Start one, and publish to its SRT URL.'

const state = byId('state', HTMLSelectElement)
const previews = new Previews()
const list = new StreamList(previews, select)
const nodeList = new NodeList()
const detail = new Detail(previews)
const announcer = new Announcer()
/** `after` of the page that is shown. */
let after = ''
let snapshot: Snapshot | undefined
let endFeed: (() => void) | undefined

function look(): void {
  endFeed?.()
  announcer.reset()
  endFeed = follow(
    { status: state.value, after },
    {
      onSnapshot: show,
      onConnection: (isOpen) => {
        setText(byId('connection'), isOpen ? '' : 'Connecting …')
        document.body.classList.toggle('stale', !isOpen)
      },
      onLoggedOut: askPassword,
    },
  )
}

function show(received: Snapshot): void {
  snapshot = received
  const { rows, next, load, nodes = [], timeMs } = received
  list.show(rows, detail.row?.id)
  nodeList.show(nodes)
  const selected = rows.find(({ id }) => id === detail.row?.id)
  if (selected !== undefined) detail.update(selected, received)
  else if (detail.row !== undefined) closeDetail()
  announcer.observe(rows, timeMs)
  previews.refresh(timeMs)
  const isEmpty = rows.length === 0
  setText(byId('empty'), state.value === '' && after === '' ? EMPTY : 'No streams here.')
  byId('empty').hidden = !isEmpty
  byId('pages').hidden = after === '' && next === undefined
  setDisabled(byId('first-page'), after === '')
  setDisabled(byId('next-page'), next === undefined)
  const delay = load && `Event loop ${load.loopDelayMs.toFixed(0)} ms late`
  const drops = load?.kernelDrops && `${load.kernelDrops} datagrams dropped by the kernel`
  const connections = load && `${load.httpConnections} HTTP connections`
  setText(byId('load'), [delay, connections, drops].filter(Boolean).join(' · '))
}

function select(id: string): void {
  const row = snapshot?.rows.find((each) => each.id === id)
  if (row === undefined || snapshot === undefined) return
  if (detail.row?.id === id) return closeDetail()
  detail.open(row, snapshot)
  list.show(snapshot.rows, id)
}

function closeDetail(): void {
  const id = detail.row?.id
  const hadFocus = byId('detail').contains(document.activeElement)
  detail.close()
  if (snapshot !== undefined) list.show(snapshot.rows, undefined)
  if (hadFocus && id !== undefined) list.focus(id)
}

function turnTo(id: string): void {
  after = id
  closeDetail()
  look()
  byId('list-title').focus()
}

function enter(): void {
  setVisible(true)
  look()
}

function askPassword(): void {
  endFeed?.()
  endFeed = undefined
  closeDetail()
  list.clear()
  for (const dialog of document.querySelectorAll('dialog')) dialog.close()
  setText(byId('connection'), '')
  setText(byId('load'), '')
  setVisible(false)
  byId('password').focus()
}

function setVisible(isInside: boolean): void {
  byId('login').hidden = isInside
  byId('dashboard').hidden = !isInside
  byId('start').hidden = !isInside
  byId('logout').hidden = !isInside
}

async function logIn(): Promise<void> {
  const password = byId('password', HTMLInputElement)
  const error = byId('login-error')
  error.textContent = ''
  try {
    await call('login', { password: password.value })
    password.value = ''
    enter()
    byId('list-title').focus()
  } catch (refusal) {
    error.textContent = (refusal as Error).message
    password.select()
  }
}

async function issueKey(): Promise<void> {
  const error = byId('detail-error')
  setText(error, '')
  await startStream(selectedId()).catch((refusal: Error) => setText(error, refusal.message))
}

function selectedId(): string {
  return detail.row?.id ?? ''
}

prepareDialogs()
byId('login').addEventListener('submit', (event) => {
  event.preventDefault()
  void logIn()
})
onPress('logout', () => void call('logout', {}).finally(askPassword))
onPress('start', () => openStart(() => undefined))
onPress('new-key', () => void issueKey())
onPress('kick', () => openKick(selectedId()))
onPress('stop', () => openStop(selectedId()))
onPress('close-detail', closeDetail)
byId('detail').addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') closeDetail()
})
state.addEventListener('change', () => {
  after = ''
  closeDetail()
  look()
})
onPress('first-page', () => turnTo(''))
onPress('next-page', () => turnTo(snapshot?.next ?? ''))

if (await hasSession()) enter()
else askPassword()
