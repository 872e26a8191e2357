/**
 * Main module of the dashboard: login, the list of streams, and the selected one.
 *
 * @module
 */
import { Announcer } from './announcer.ts'
import { call, readSession } from './calls.ts'
import { Detail } from './detail.ts'
import { openKick, openStart, openStop, prepareDialogs, startStream } from './dialogs.ts'
import { byId, onPress, setText } from './dom.ts'
import { followSnapshots } from './feed.ts'
import { Head } from './head.ts'
import { ListControls } from './list-controls.ts'
import { NodeTable } from './node-table.ts'
import { Previews } from './previews.ts'
import { StreamList } from './stream-list.ts'
import type { Snapshot } from './wire.ts'

const LOST =
  'The service has been restarted or has another password, or you have logged in at another one on this host: log in again.'

const head = new Head()
const previews = new Previews()
const controls = new ListControls(() => {
  announcer.reset()
  look()
})
const list = new StreamList(previews, select)
const nodeList = new NodeTable()
const detail = new Detail(previews)
const announcer = new Announcer()
let snapshot: Snapshot | undefined
let isReachable = true
let endFeed: (() => void) | undefined

function look(): void {
  endFeed?.()
  endFeed = followSnapshots(
    { ...controls.view, stream: detail.row?.id ?? '' },
    {
      onSnapshot: show,
      onConnection: noteConnection,
      onLoggedOut: ({ lost }) => askPassword(lost ? LOST : 'The session has ended: log in again.'),
    },
  )
}

function noteConnection(isOpen: boolean): void {
  if (isOpen === isReachable) return
  isReachable = isOpen
  head.setReachable(isOpen)
  announcer.noteConnection(isOpen)
}

function show(received: Snapshot): void {
  snapshot = received
  const { rows, selected, nodes = [], timeMs } = received
  head.show(received)
  controls.show(received)
  if (selected !== undefined && detail.row !== undefined) detail.update(selected, received)
  else if (detail.row !== undefined) closeDetail()
  list.show(rows, detail.row?.id)
  nodeList.show(nodes)
  announcer.observe(rows, timeMs)
  previews.refresh(timeMs)
}

function select(id: string): void {
  const row = snapshot?.rows.find((each) => each.id === id)
  if (row === undefined || snapshot === undefined) return
  if (detail.row?.id === id) return closeDetail()
  detail.open(row, snapshot)
  list.show(snapshot.rows, id)
  look()
}

function closeDetail(): void {
  const id = detail.row?.id
  const hadFocus = byId('detail').contains(document.activeElement)
  detail.close()
  if (snapshot !== undefined) list.show(snapshot.rows, undefined)
  if (hadFocus && id !== undefined) list.focus(id)
}

function enter(): void {
  setVisible(true)
  look()
}

/** @param reason  why the password is asked again; empty at first */
function askPassword(reason = ''): void {
  setText(byId('login-reason'), reason)
  endFeed?.()
  endFeed = undefined
  isReachable = true
  announcer.reset()
  closeDetail()
  list.clear()
  for (const dialog of document.querySelectorAll('dialog')) dialog.close()
  head.clear()
  setVisible(false)
  byId('password').focus()
}

function setVisible(isInside: boolean): void {
  byId('login').hidden = isInside
  for (const id of ['dashboard', 'totals', 'process', 'start', 'logout']) {
    byId(id).hidden = !isInside
  }
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
  // The URL for readers is valid as long as the key: each key has its own.
  const issuing = startStream(selectedId(), { play: true })
  await issuing.catch((refusal: Error) => setText(error, refusal.message))
}

function selectedId(): string {
  return detail.row?.id ?? ''
}

prepareDialogs()
byId('login').addEventListener('submit', (event) => {
  event.preventDefault()
  void logIn()
})
onPress('logout', () => void call('logout', {}).finally(() => askPassword()))
onPress('start', () => openStart(() => undefined))
onPress('new-key', () => void issueKey())
onPress('kick', () => openKick(selectedId()))
onPress('stop', () => openStop(selectedId()))
onPress('close-detail', closeDetail)
byId('detail').addEventListener('keydown', ({ key }) => {
  if (key === 'Escape') closeDetail()
})
const session = await readSession()
if (session.open) enter()
else askPassword(session.lost ? LOST : '')
