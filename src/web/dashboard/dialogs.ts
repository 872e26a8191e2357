/**
 * Dialogs that change streams: start, stop, kick, revoke.
 *
 * @module
 */
import { call } from './calls.ts'
import { byId, isDisabled, setDisabled, setName } from './dom.ts'
import { time } from './format.ts'
import { prepareTabs } from './tabs.ts'
import type { QrCode } from './wire.ts'

/** SRT latency for a line that nobody has measured. */
const LATENCY_MS = 500

/** The same in a URL for OBS and ffmpeg, in microseconds. */
const LATENCY_PARAMETER = `latency=${LATENCY_MS * 1000}`

interface StartedStream {
  readonly stream_id: string
  readonly srt_url: string
  readonly stream_key: string
  readonly short_stream_key: string
  readonly publish_url?: string
  readonly passphrase?: string
  readonly play_url?: string
  readonly expires_at: string
  readonly qr_code?: QrCode
  readonly backup_srt_url?: string
  readonly backup_stream_key?: string
  readonly backup_short_stream_key?: string
  readonly backup_qr_code?: QrCode
}

/** Options of start-stream. */
interface StartOptions {
  readonly encryption?: boolean
  readonly backup?: boolean
  readonly play?: boolean
  readonly key_lifetime_sec?: number
  readonly publish_port?: number
  readonly pull_url?: string
  readonly push_urls?: readonly string[]
  readonly slate?: string
  readonly always_on?: boolean
}

type Field = HTMLInputElement | HTMLTextAreaElement

/** What the encoders of the dialog get. */
let issued: StartedStream | undefined

/** Connects buttons of the dialogs; call once. */
export function prepareDialogs(): void {
  for (const dialog of document.querySelectorAll('dialog')) {
    const cancel = dialog.querySelector('.cancel')
    cancel?.addEventListener('click', () => dialog.close())
  }
  for (const button of document.querySelectorAll<HTMLElement>('[data-copy]')) {
    const status = button.closest('.copies')!.querySelector('.copied')!
    const field = fieldOf(button.dataset['copy']!)
    button.addEventListener('click', () => void copy(field, status))
  }
  byId('key-choice').addEventListener('change', showKey)
  prepareTabs(byId('encoders'))
  // The URL is a credential.
  byId('url-dialog').addEventListener('close', () => {
    issued = undefined
    for (const field of byId('url-dialog').querySelectorAll<Field>('[readonly]')) field.value = ''
    byId('qr-code').replaceChildren()
  })
}

export function openStart(onStarted: (id: string) => void): void {
  const texts = ['stream-id', 'pull-url', 'slate', 'publish-port'].map((each) =>
    byId(each, HTMLInputElement),
  )
  const listeners = byId('push-urls', HTMLTextAreaElement)
  for (const text of [...texts, listeners]) text.value = ''
  const boxes = ['encryption', 'backup', 'play-over-srt', 'always-on'].map((each) =>
    byId(each, HTMLInputElement),
  )
  for (const box of boxes) box.checked = false
  const lifetime = byId('key-lifetime', HTMLSelectElement)
  lifetime.selectedIndex = 0
  ask('start-dialog', async () => {
    const [encryption, backup, play, alwaysOn] = boxes.map(({ checked }) => checked)
    const [id = '', pullUrl, slate, port] = texts.map(({ value }) => value)
    const pushUrls = listeners.value.split(/\s+/).filter((url) => url !== '')
    await startStream(id, {
      ...(encryption && { encryption }),
      ...(backup && { backup }),
      ...(play && { play }),
      key_lifetime_sec: Number(lifetime.value),
      ...(port && { publish_port: Number(port) }),
      ...(pullUrl && { pull_url: pullUrl }),
      ...(pushUrls.length > 0 && { push_urls: pushUrls }),
      ...(slate && { slate }),
      ...(alwaysOn && { always_on: true }),
    })
    onStarted(id)
  })
}

/** Issues a stream key, or two, and shows the URLs with them. */
export async function startStream(id: string, options: StartOptions): Promise<void> {
  const body = { stream_id: id, ...options }
  show(await call<StartedStream>('streams/start-stream', body))
}

export function openKick(id: string): void {
  setName(byId('kick-title'), `Kick the encoder of ${id}?`)
  const ban = byId('ban', HTMLSelectElement)
  ban.value = '0'
  ask('kick-dialog', () => call('streams/kick', { stream_id: id, ban_sec: Number(ban.value) }))
}

export function openStop(id: string): void {
  setName(byId('stop-title'), `Stop ${id}?`)
  const revoke = byId('revoke', HTMLInputElement)
  revoke.checked = false
  ask('stop-dialog', () => call('streams/stop-stream', { stream_id: id, revoke: revoke.checked }))
}

/** @param name  of the key, for the title */
export function openRevoke(id: string, keyId: string, name: string): void {
  setName(byId('revoke-title'), `Revoke the ${name} of ${id}?`)
  ask('revoke-dialog', () => call('streams/revoke-key', { stream_id: id, key_id: keyId }))
}

/** The latest question: the event `close` of one may come after the next has been opened. */
let asking = new AbortController()

/** Opens a dialog with a form; it closes when the call has succeeded, and shows the refusal otherwise. */
function ask(dialogId: string, act: () => Promise<unknown>): void {
  const dialog = byId(dialogId, HTMLDialogElement)
  const form = dialog.querySelector('form')!
  const error = form.querySelector('.error')!
  const submit = form.querySelector('button:not([type])')!
  error.textContent = ''
  setDisabled(submit, false)
  asking.abort()
  asking = new AbortController()
  const { signal } = asking
  const submitForm = async () => {
    setDisabled(submit, true)
    error.textContent = ''
    try {
      await act()
      if (!signal.aborted) dialog.close()
    } catch (refusal) {
      if (signal.aborted) return
      error.textContent = (refusal as Error).message
      setDisabled(submit, false)
    }
  }
  const onSubmit = (event: SubmitEvent) => {
    event.preventDefault()
    if (!isDisabled(submit)) void submitForm()
  }
  form.addEventListener('submit', onSubmit, { signal })
  dialog.showModal()
}

function show(started: StartedStream): void {
  issued = started
  setName(byId('url-title'), `Publish ${started.stream_id}`)
  byId('expiry').textContent = time(Date.parse(started.expires_at))
  byId('publish-url-field').hidden = started.publish_url === undefined
  byId('play-url-field').hidden = started.play_url === undefined
  byId('passphrase-field').hidden = started.passphrase === undefined
  byId('key-choice').hidden = started.backup_srt_url === undefined
  byId('key-of-main', HTMLInputElement).checked = true
  showKey()
  byId('url-dialog', HTMLDialogElement).showModal()
  // The first field has the focus, with the caret at its end.
  const url = byId('srt-url', HTMLTextAreaElement)
  url.setSelectionRange(0, 0)
  url.scrollTop = 0
}

/** Shows the key of the chosen encoder. */
function showKey(): void {
  if (issued === undefined) return
  const isBackup = byId('key-of-backup', HTMLInputElement).checked
  const { srt_url, stream_key, short_stream_key, qr_code } = isBackup ? backupOf(issued) : issued
  const [, host = '', port = ''] = /^srt:\/\/([^?]+):(\d+)/.exec(srt_url) ?? []
  const values = {
    'srt-url': srt_url,
    'obs-server': srt_url.replace(/streamid=[^&]*/, LATENCY_PARAMETER),
    'obs-key': stream_key,
    'ffmpeg-line': `ffmpeg -re -i INPUT -c copy -f mpegts -pes_payload_size 0 '${srt_url}&${LATENCY_PARAMETER}&linger=2'`,
    host,
    port,
    mode: 'Caller',
    'latency-ms': String(LATENCY_MS),
    'stream-key': stream_key,
    'short-stream-key': short_stream_key,
    passphrase: issued.passphrase ?? '',
    'publish-url': issued.publish_url ?? '',
    'play-url': issued.play_url ?? '',
  }
  for (const [id, value] of Object.entries(values)) fieldOf(id).value = value
  byId('url-dialog').querySelector('.copied')!.textContent = ''
  drawQrCode('qr-code', qr_code)
}

function backupOf(
  started: StartedStream,
): Pick<StartedStream, 'srt_url' | 'stream_key' | 'short_stream_key' | 'qr_code'> {
  const { backup_srt_url = '', backup_stream_key = '', backup_qr_code: code } = started
  const { backup_short_stream_key = '' } = started
  return {
    srt_url: backup_srt_url,
    stream_key: backup_stream_key,
    short_stream_key: backup_short_stream_key,
    ...(code && { qr_code: code }),
  }
}

/** @param id  of the SVG, which is hidden without a code */
export function drawQrCode(id: string, code: QrCode | undefined): void {
  const svg = byId(id, SVGSVGElement)
  svg.toggleAttribute('hidden', code === undefined)
  if (code === undefined) return
  svg.setAttribute('viewBox', `0 0 ${code.size} ${code.size}`)
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', code.path)
  svg.replaceChildren(path)
}

function fieldOf(id: string): Field {
  return byId(id) as Field
}

async function copy(input: Field, status: Element): Promise<void> {
  // Over plain HTTP there is no `navigator.clipboard`.
  const isCopied = await (window.isSecureContext
    ? navigator.clipboard.writeText(input.value).then(
        () => true,
        () => copySelection(input),
      )
    : copySelection(input))
  status.textContent = isCopied ? 'Copied.' : 'Not copied: press Ctrl+C.'
}

function copySelection(input: Field): boolean {
  input.select()
  return document.execCommand('copy')
}
