/**
 * Dialogs that change streams: start, stop, kick.
 *
 * @module
 */
import { call } from './calls.ts'
import { byId, isDisabled, setDisabled } from './dom.ts'
import type { QrCode } from '../wire.ts'

interface StartedStream {
  readonly stream_id: string
  readonly srt_url: string
  readonly stream_key: string
  readonly expires_at: string
  readonly qr_code?: QrCode
}

/** Connects buttons of the dialogs; call once. */
export function prepareDialogs(): void {
  for (const dialog of document.querySelectorAll('dialog')) {
    const cancel = dialog.querySelector('.cancel')
    cancel?.addEventListener('click', () => dialog.close())
  }
  for (const button of document.querySelectorAll<HTMLElement>('[data-copy]')) {
    button.addEventListener(
      'click',
      () => void copy(byId(button.dataset['copy']!, HTMLInputElement)),
    )
  }
  // The URL is a credential.
  byId('url-dialog').addEventListener('close', () => {
    for (const input of byId('url-dialog').querySelectorAll('input')) input.value = ''
    byId('qr-code').replaceChildren()
  })
}

export function openStart(onStarted: (id: string) => void): void {
  const id = byId('stream-id', HTMLInputElement)
  id.value = ''
  const encryption = byId('encryption', HTMLInputElement)
  encryption.checked = false
  ask('start-dialog', async () => {
    await startStream(id.value, encryption.checked)
    onStarted(id.value)
  })
}

/** Issues a stream key, and shows the URL with it. */
export async function startStream(id: string, encryption = false): Promise<void> {
  const body = { stream_id: id, ...(encryption && { encryption }) }
  show(await call<StartedStream>('streams/start-stream', body))
}

export function openKick(id: string): void {
  byId('kick-title').textContent = `Kick the encoder of ${id}?`
  const ban = byId('ban', HTMLSelectElement)
  ban.value = '0'
  ask('kick-dialog', () => call('streams/kick', { stream_id: id, ban_sec: Number(ban.value) }))
}

export function openStop(id: string): void {
  byId('stop-title').textContent = `Stop ${id}?`
  const revoke = byId('revoke', HTMLInputElement)
  revoke.checked = false
  ask('stop-dialog', () => call('streams/stop-stream', { stream_id: id, revoke: revoke.checked }))
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

function show({ stream_id: id, srt_url, stream_key, expires_at, qr_code }: StartedStream): void {
  byId('url-title').textContent = `Publish ${id}`
  byId('srt-url', HTMLInputElement).value = srt_url
  byId('stream-key', HTMLInputElement).value = stream_key
  byId('expiry').textContent =
    `at ${new Date(expires_at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`
  byId('copied').textContent = ''
  drawQrCode(qr_code)
  byId('url-dialog', HTMLDialogElement).showModal()
}

function drawQrCode(code: QrCode | undefined): void {
  const svg = byId('qr-code', SVGSVGElement)
  svg.toggleAttribute('hidden', code === undefined)
  if (code === undefined) return
  svg.setAttribute('viewBox', `0 0 ${code.size} ${code.size}`)
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', code.path)
  svg.replaceChildren(path)
}

async function copy(input: HTMLInputElement): Promise<void> {
  // Over plain HTTP there is no `navigator.clipboard`.
  const isCopied = await (window.isSecureContext
    ? navigator.clipboard.writeText(input.value).then(
        () => true,
        () => copySelection(input),
      )
    : copySelection(input))
  byId('copied').textContent = isCopied ? 'Copied.' : 'Not copied: press Ctrl+C.'
}

function copySelection(input: HTMLInputElement): boolean {
  input.select()
  return document.execCommand('copy')
}
