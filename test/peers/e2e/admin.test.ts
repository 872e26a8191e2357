/**
 * The dashboard in a browser: what an operator does with it, on a desktop, on a phone, and with a keyboard alone.
 */
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { AXE, findFaults } from '../support/accessibility.ts'
import { openBrowser } from '../support/browser.ts'
import { encodeTo, startCluster } from '../support/cluster.ts'
import { freePorts } from '../../support/free-port.ts'
import { publishDemo } from '../../support/demo-encoder.ts'
import { start, type Program } from '../../support/process.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const PASSWORD = 'correct horse battery staple'

const CLIP = new URL('../../../fixtures/demo.mpegts', import.meta.url)

const SOURCE = [
  ...['-v', 'error', '-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'],
  ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30'],
  ...['-b:v', '500k', '-f', 'mpegts'],
]

/** Opens the dashboard; `errors` collects errors and what the content security policy refuses. */
async function openDashboard(t: Test, url: string) {
  const browser = await openBrowser(t)
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) errors.push(message.text())
  })
  // axe-core comes in before the policy holds.
  await context.addInitScript({ path: AXE })
  await page.goto(`${url}/admin`)
  return { page, errors }
}

/** Passes TCP connections on to a port; `cut` ends all and refuses more until `join`. */
async function startRelay(t: Test, target: number) {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((socket) => {
    if (isCut) {
      socket.destroy()
      return
    }
    const onward = connect(target, '127.0.0.1')
    for (const each of [socket, onward]) {
      sockets.add(each)
      each.on('error', () => each.destroy())
      each.on('close', () => {
        socket.destroy()
        onward.destroy()
        sockets.delete(each)
      })
    }
    socket.pipe(onward).pipe(socket)
  })
  const cut = () => {
    isCut = true
    for (const each of sockets) each.destroy()
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    cut()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, cut, join: () => void (isCut = false) }
}

function publishTo(t: Test, srtUrl: string): Program {
  return start(t, 'ffmpeg', [...SOURCE, srtUrl])
}

/** Text of a cell of a stream's row. */
function cell(page: Page, id: string, column: number): Promise<string> {
  return page.locator(`#rows tr:has-text("${id}") > *`).nth(column).innerText()
}

/** Width of all that the page shows, in CSS pixels: above that of the window, it scrolls sideways. */
function pageWidth(page: Page): Promise<number> {
  return page.evaluate<number>('document.documentElement.scrollWidth')
}

/** Whether the first row has a preview. */
function isDrawn(page: Page): Promise<boolean> {
  const pixel =
    'document.querySelector("#rows canvas").getContext("2d").getImageData(160, 90, 1, 1)'
  return page.evaluate<boolean>(`${pixel}.data[3] === 255`)
}

/** Records what a screen reader tells from now on: a warning of a busy machine soon replaces the state. */
async function recordAnnouncements(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(`{
    const region = document.querySelector('#announcer')
    window.announcements = []
    new MutationObserver(() => announcements.push(region.textContent)).observe(region, { childList: true })
  }`)
  return () => page.evaluate<string[]>('announcements')
}

function clipboardless(page: Page): Promise<unknown> {
  return page.evaluate('Object.defineProperty(window, "isSecureContext", { value: false })')
}

t.test('an operator starts, watches, kicks and stops a stream', async (t) => {
  if (!requireTool(t, 'chromium', 'ffmpeg')) return
  const { server, url } = await startService(t, { admin: { password: PASSWORD } })
  const { page, errors } = await openDashboard(t, url)
  t.equal(page.url(), `${url}/admin/`)
  t.strictSame(await findFaults(page), [], 'no fault in the login')

  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('The password is wrong').waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('No streams. Start one').waitFor()

  await page.getByRole('button', { name: 'Start a stream' }).click()
  await page.getByRole('textbox', { name: 'Stream id', exact: true }).fill('studio')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  const urlField = page.getByLabel('SRT URL for the encoder')
  await urlField.waitFor()
  const srtUrl = await urlField.inputValue()
  t.match(srtUrl, /^srt:\/\/127\.0\.0\.1:\d+\?streamid=mode=publish,rid=studio,token=/)
  t.equal(
    await page.getByLabel('Server').inputValue(),
    srtUrl.replace(/streamid=.*/, 'latency=500000'),
  )
  t.ok(await page.getByRole('img', { name: 'QR code of the SRT URL' }).isVisible())
  t.notOk(await page.getByLabel('URL for readers over SRT').isVisible())
  t.strictSame(await findFaults(page), [], 'no fault in the dialog with the URL')
  await clipboardless(page)
  await page.getByRole('button', { name: 'Copy URL' }).click()
  await page.getByText('Copied.').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await until('the page keeps no credential', async () => (await urlField.inputValue()) === '')

  const announcements = await recordAnnouncements(page)
  const encoder = publishTo(t, srtUrl)
  await until('the row is live', async () => (await cell(page, 'studio', 1)) === 'Live')
  t.match(await cell(page, 'studio', 2), /^127\.0\.0\.1:\d+$/)
  await until('a bitrate', async () => /^[\d.]+ [kM]bit\/s$/.test(await cell(page, 'studio', 3)))
  t.match(await cell(page, 'studio', 4), / ms$/)
  await until('it is announced', async () =>
    (await announcements()).some((told) => told.includes('studio: Live')),
  )

  const row = page.getByRole('button', { name: 'studio', exact: true })
  await row.click()
  await page.getByRole('heading', { name: 'studio' }).waitFor()
  await page.locator('#tracks', { hasText: 'h264 320×180 30 fps' }).waitFor()
  await page.getByRole('img', { name: /^Bitrate: now .+bit\/s, from / }).waitFor()
  t.equal(await page.getByRole('img', { name: /in the last 10 minutes$/ }).count(), 4)
  t.strictSame(await findFaults(page), [], 'no fault in the list and the graphs')

  await until('the key frame is drawn', () => isDrawn(page))
  await page.locator('#events li', { hasText: 'Encoder connected' }).waitFor()
  await page.evaluate('window.event = document.querySelector("#events li")')
  await page.locator('#tracks', { hasText: /h264 .* bit\/s|kbit\/s/ }).waitFor()
  t.match(await page.locator('#facts').innerText(), /Retransmitted\s+\d/)
  t.match(await page.locator('#events').innerText(), /Live[^]*Stream key issued[^]*Started/)
  t.notMatch(await page.locator('#detail').innerText(), /token=/)
  await page.getByRole('button', { name: 'Copy master URL' }).click()
  await page.locator('#play .copied', { hasText: 'Copied.' }).waitFor()
  for (const name of ['QR code of the playlist URL', 'QR code of the master URL']) {
    await page.getByRole('button', { name }).click()
    await page.getByRole('img', { name }).waitFor()
  }
  await page.locator('#picture-age', { hasText: /^Picture, \d+ s old$/ }).waitFor()
  await page.locator('#latency', { hasText: 'Expected latency' }).waitFor()
  await page.getByRole('button', { name: 'Check', exact: true }).click()
  // The check has low priority, for which a busy machine has little time.
  await page.locator('#check-status', { hasText: /^Checked: / }).waitFor({ timeout: 300_000 })
  t.ok(await page.evaluate('window.event.isConnected'), 'an event is not drawn again')
  t.strictSame(await findFaults(page), [], 'no fault in the time line and the check')

  await page.getByRole('button', { name: 'Kick encoder' }).click()
  await page.getByLabel('Refuse encoders of this stream').selectOption('for 1 minute')
  await page.getByRole('button', { name: 'Kick', exact: true }).click()
  await encoder.exit
  await until('interrupted', async () => (await cell(page, 'studio', 1)) === 'Interrupted')
  t.equal(server.status('studio').status, 'INTERRUPTED')
  const banner = 'an operator disconnected the encoder. Stops in '
  await page.locator('#interruption', { hasText: banner }).waitFor()
  await page.locator('#picture-age', { hasText: /^Last picture, \d+ s old$/ }).waitFor()
  t.equal(await page.locator('#latency').innerText(), '', 'nothing arrives that could be late')

  await page.setViewportSize({ width: 360, height: 740 })
  // Graphs follow the width of the page a frame later.
  await until('the page fits a phone', async () => (await pageWidth(page)) === 360)
  await page.getByRole('button', { name: 'New stream key' }).click()
  await page.getByRole('dialog').waitFor()
  const overflow = '(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)'
  const dialog = 'document.querySelector("dialog[open]")'
  t.equal(await page.evaluate(`${overflow}(${dialog})`), 0, 'a dialog fits a phone')
  const readers = page.getByLabel('URL for readers over SRT')
  t.match(await readers.inputValue(), 'mode=request,rid=studio', 'as long as the new key')
  t.ok(await readers.isVisible())
  await page.getByRole('button', { name: 'Done' }).click()
  t.strictSame(await findFaults(page), [], 'no fault on a phone')
  await page.getByRole('button', { name: 'Close' }).click()
  t.equal(await page.evaluate('document.activeElement.textContent'), 'studio', 'focus is back')
  t.equal(await pageWidth(page), 360)
  await row.click()
  await page.getByRole('button', { name: 'Stop stream' }).click()
  await page.getByLabel('Revoke all its stream keys').check()
  await page.getByRole('button', { name: 'Stop', exact: true }).click()
  await until('stopped', () => server.status('studio').status === 'STOPPED')
  await page.locator('#facts', { hasText: 'Stopped' }).waitFor()

  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Password').waitFor()
  t.equal(await page.locator('#login-reason').innerText(), '')
  t.equal(await page.locator('#rows tr').count(), 0)
  t.strictSame(errors, [])
})

t.test('an operator puts the backup encoder on air, and sees the slate', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const slateDir = mkdtempSync(join(tmpdir(), 'millrace-slates-'))
  t.teardown(() => rmSync(slateDir, { recursive: true }))
  copyFileSync(CLIP, join(slateDir, 'away.ts'))
  const [port] = await freePorts(1)
  const srt = { streamPorts: `${port}-${port}` }
  const { server, url } = await startService(t, { admin: { password: PASSWORD }, slateDir, srt })
  const { page, errors } = await openDashboard(t, url)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Start a stream' }).click()
  await page.getByRole('textbox', { name: 'Stream id', exact: true }).fill('studio')
  await page.getByRole('checkbox', { name: 'Backup encoder' }).check()
  await page.getByRole('checkbox', { name: 'Play over SRT' }).check()
  await page.getByLabel('Slate, for viewers').fill('away.ts')
  await page.getByRole('checkbox', { name: 'Encrypt' }).check()
  await page.getByLabel('The stream key is good for').selectOption('1 day')
  await page.getByLabel('Port of its own, for an encoder that sends no id').fill(String(port))
  t.strictSame(await findFaults(page), [], 'no fault in the dialog')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  const urlField = page.getByLabel('SRT URL for the encoder')
  await urlField.waitFor()
  const mainUrl = await urlField.inputValue()
  await page.getByRole('radio', { name: 'Backup encoder' }).check()
  const backupUrl = await urlField.inputValue()
  t.not(mainUrl, backupUrl)
  t.ok(await page.getByRole('img', { name: 'QR code of the SRT URL' }).isVisible())
  const obsKey = page.getByRole('textbox', { name: 'Stream Key' })
  t.match(backupUrl, await obsKey.inputValue())
  const [, host, srtPort, streamKey, passphrase] =
    /^srt:\/\/(.+):(\d+)\?streamid=(.+)&passphrase=(.+)&pbkeylen=32$/.exec(backupUrl)!
  const tab = (name: string) => page.getByRole('tab', { name })
  const panel = (name: string) => page.getByRole('tabpanel', { name })
  await tab('OBS').focus()
  await page.keyboard.press('Control+ArrowRight')
  t.ok(await obsKey.isVisible(), 'keys with a modifier are for the browser')
  await page.keyboard.press('ArrowRight')
  t.equal(
    await panel('ffmpeg').getByLabel('Command').inputValue(),
    `ffmpeg -re -i INPUT -c copy -f mpegts -pes_payload_size 0 '${backupUrl}&latency=500000&linger=2'`,
  )
  t.notOk(await obsKey.isVisible())
  t.strictSame(await findFaults(page), [], 'no fault in a tab')
  for (const [key, chosen] of [
    ['ArrowRight', 'Hardware'],
    ['ArrowRight', 'OBS'],
    ['ArrowLeft', 'Hardware'],
    ['Home', 'OBS'],
    ['End', 'Hardware'],
  ] as const) {
    await page.keyboard.press(key)
    t.equal(await page.getByRole('tab', { selected: true }).innerText(), chosen)
    t.equal(await page.evaluate('document.activeElement.textContent.trim()'), chosen)
    t.equal(await page.getByRole('tabpanel').count(), 1)
  }
  const field = (name: string) =>
    panel('Hardware').getByRole('textbox', { name, exact: true }).inputValue()
  t.strictSame(
    await Promise.all(
      ['Host', 'Port', 'Mode', 'Latency, ms', 'Stream id', 'Passphrase, AES-256'].map(field),
    ),
    [host, srtPort, 'Caller', '500', streamKey, passphrase],
  )
  t.match(await page.getByLabel('Short stream id').inputValue(), /^studio-[\w-]{27}$/)
  const portUrl = page.getByLabel('URL at the port of its own, without an id')
  t.match(await portUrl.inputValue(), new RegExp(`^srt://[^?]+:${port}\\?passphrase=`))
  const playUrl = page.getByLabel('URL for readers over SRT')
  t.match(await playUrl.inputValue(), /\?streamid=mode=request,rid=studio&passphrase=/)
  for (const { issuedAt, expiresAt } of server.status('studio').keys ?? [])
    t.equal(expiresAt.getTime() - issuedAt!.getTime(), 86_400_000)
  t.strictSame(await findFaults(page), [], 'no fault in the dialog with the URLs')
  await page.getByRole('button', { name: 'Done' }).click()
  for (const field of [urlField, playUrl])
    await until('the page keeps no credential', async () => (await field.inputValue()) === '')

  const main = publishDemo(t, mainUrl)
  await until('the row is live', async () => (await cell(page, 'studio', 1)) === 'Live')
  await page.getByRole('button', { name: 'studio', exact: true }).click()
  const item = (name: string) => page.locator('#sources li', { hasText: name })
  const onAir = (name: string) => page.locator('#sources [data-state=ON_AIR]', { hasText: name })
  const putOnAir = page.getByRole('button', { name: 'Put on air: Backup encoder' })
  await item('Backup encoder').filter({ hasText: 'away' }).waitFor()
  t.equal(await putOnAir.getAttribute('aria-disabled'), 'true', 'it is not connected')
  const backup = publishDemo(t, backupUrl)
  await item('Backup encoder')
    .filter({ hasText: /ready.*127\.0\.0\.1:\d+ · .+bit\/s · RTT/ })
    .waitFor()
  await onAir('Main encoder').waitFor()
  await putOnAir.click()
  await onAir('Backup encoder').waitFor()
  t.equal(server.status('studio').onAir, 'backup')
  await page.locator('#facts', { hasText: 'Live on backup' }).waitFor()
  const switched = 'Main encoder to Backup encoder: by a call of the API or here'
  await page.locator('#events', { hasText: switched }).waitFor()
  t.match(await cell(page, 'studio', 1), /^Live\s*on backup/)
  t.strictSame(await findFaults(page), [], 'no fault in the sources')

  const keys = page.locator('#keys li')
  await keys.filter({ hasText: 'last used' }).nth(1).waitFor()
  t.equal(await keys.count(), 2)
  await page.getByRole('button', { name: 'Revoke: backup encoder key' }).click()
  await page.getByRole('dialog', { name: 'Revoke the backup encoder key' }).waitFor()
  t.strictSame(await findFaults(page), [], 'no fault in the dialog that revokes a key')
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await keys.filter({ hasText: 'Backup encoder' }).waitFor({ state: 'detached' })
  t.match(server.status('studio').keys, [{ source: 'main' }])
  await onAir('Main encoder').waitFor()

  main.stop()
  backup.stop()
  await page.locator('#slate-notice').waitFor()
  await onAir('Slate').waitFor()
  await page.getByRole('button', { name: 'Interrupted 1' }).waitFor()
  t.match(await cell(page, 'studio', 1), /^Interrupted\s*on slate/)
  await page.setViewportSize({ width: 360, height: 740 })
  await until('the page fits a phone', async () => (await pageWidth(page)) === 360)
  t.strictSame(await findFaults(page), [], 'no fault on a phone')
  t.strictSame(errors, [])
})

t.test('the dashboard needs no mouse, and updates do not move the focus', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { server, url } = await startService(t, { admin: { password: PASSWORD } })
  for (const streamId of ['b', 'd']) await server.startStream({ streamId })
  const { page, errors } = await openDashboard(t, url)
  const focused = () =>
    page.evaluate<string>(
      '(document.activeElement.id || document.activeElement.textContent).trim()',
    )
  const tabTo = async (name: string) => {
    for (let presses = 0; (await focused()) !== name; presses++) {
      if (presses > 30) throw new Error(`${name} is not reached, but ${await focused()}`)
      await page.keyboard.press('Tab')
      const outline = 'getComputedStyle(document.activeElement).outlineStyle'
      const isBody = await page.evaluate('document.activeElement === document.body')
      if (!isBody)
        t.equal(await page.evaluate(outline), 'solid', `${await focused()} shows the focus`)
    }
  }
  await until('the password has the focus', async () => (await focused()) === 'password')
  await page.keyboard.type(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'd', exact: true }).waitFor()
  await tabTo('d')
  for (const streamId of ['a', 'c', 'e']) await server.startStream({ streamId })
  await page.getByRole('button', { name: 'e', exact: true }).waitFor()
  t.equal(await focused(), 'd')
  t.same(await page.locator('#rows th').allInnerTexts(), ['a', 'b', 'c', 'd', 'e'])
  await page.keyboard.press('Enter')
  t.equal(await focused(), 'detail-title')
  await tabTo('stop')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  t.equal(await focused(), 'stop', 'a dialog gives the focus back')
  t.equal(server.status('d').status, 'READY')
  // Opened again before the page hears that it was closed.
  await page.evaluate(
    `const dialog = document.querySelector('#stop-dialog')
    document.activeElement.click()
    dialog.close()
    document.activeElement.click()`,
  )
  await page.getByRole('dialog').waitFor()
  await tabTo('Stop')
  await page.keyboard.press('Enter')
  await until('stopped', () => server.status('d').status === 'STOPPED')
  await until('the dialog is closed', async () => (await page.getByRole('dialog').count()) === 0)
  await page.locator('#facts', { hasText: 'Stopped' }).waitFor()
  t.equal(await focused(), 'stop', 'a button that is disabled keeps the focus')
  await page.keyboard.press('Escape')
  t.equal(await focused(), 'd')
  t.strictSame(errors, [])
})

t.test('an operator finds a stream among hundreds', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { server, url } = await startService(t, { admin: { password: PASSWORD } })
  const ids = Array.from({ length: 300 }, (_, index) => `channel-${1000 + index}`)
  for (const streamId of ids) await server.startStream({ streamId })
  await server.stopStream('channel-1007')
  publishDemo(t, (await server.startStream({ streamId: 'zebra' })).srtUrl)
  const { page, errors } = await openDashboard(t, url)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  const names = () => page.locator('#rows th').allInnerTexts()
  const shows = (expected: readonly string[]) =>
    until(`${expected.length} rows from ${expected[0]}`, async () => {
      return JSON.stringify(await names()) === JSON.stringify(expected)
    })
  const running = ids.filter((id) => id !== 'channel-1007')
  await shows(['zebra', ...running.slice(0, 49)])
  await until('the live stream', async () => (await cell(page, 'zebra', 1)) === 'Live')
  t.match(await page.locator('#totals').innerText(), /^Live\s+1\s/)
  await page
    .locator('#totals', { hasText: /CPU\d+ %Memory[\d.]+ [MG]iBUptime\d+ (s|min)$/ })
    .waitFor()
  await page.getByRole('heading', { name: /^Millrace \d+\.\d+\.\d+/ }).waitFor()
  t.equal(await page.locator('#range').innerText(), '1 to 50 of 301')

  await page.getByRole('button', { name: 'zebra', exact: true }).click()
  await page.getByRole('heading', { name: 'zebra' }).waitFor()
  await page.getByRole('button', { name: 'Next', exact: true }).click()
  await shows(running.slice(49, 99))
  t.ok(await page.getByRole('heading', { name: 'zebra' }).isVisible(), 'on another page, too')
  await page.getByRole('button', { name: 'Close' }).click()

  await page.getByRole('searchbox').fill('129')
  await shows(ids.filter((id) => id.includes('129')))
  await page.getByRole('button', { name: 'Ready 11' }).waitFor()
  await page.getByRole('searchbox').fill('nothing')
  await page.getByText('No stream matches.').waitFor()
  await page.getByRole('searchbox').fill('')
  await page.getByRole('button', { name: 'Stopped 1' }).click()
  await shows(['channel-1007'])
  await page.getByRole('button', { name: 'All 301' }).click()

  const sortBy = (name: string) => page.getByRole('columnheader', { name }).getByRole('button')
  const order = (name: string) => page.getByRole('columnheader', { name }).getAttribute('aria-sort')
  await sortBy('Stream').click()
  await shows(ids.slice(0, 50))
  t.equal(await order('Stream'), 'ascending')
  t.equal(await order('State'), null)
  await sortBy('Stream').click()
  await shows(['zebra', ...ids.toReversed().slice(0, 49)])
  t.equal(await order('Stream'), 'descending')
  await sortBy('Bitrate').click()
  t.equal(await order('Bitrate'), 'descending')
  await shows(['zebra', ...running.slice(0, 49)])
  await page.getByText('Process').click()
  await page.getByText('HTTP connections').waitFor()
  t.strictSame(await findFaults(page), [])
  await page.setViewportSize({ width: 360, height: 740 })
  t.equal(await pageWidth(page), 360)
  t.strictSame(await findFaults(page), [], 'no fault on a phone')
  t.strictSame(errors, [])
})

t.test('a service that does not answer: a band, no buttons, and recovery', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const { server } = await startService(t, { admin: { password: PASSWORD } })
  await server.startStream({ streamId: 'studio-1' })
  const relay = await startRelay(t, server.httpPort)
  const { page, errors } = await openDashboard(t, `http://127.0.0.1:${relay.port}`)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  const row = page.getByRole('button', { name: 'studio-1', exact: true })
  await row.waitFor()
  const band = page.locator('#unreachable')
  t.notOk(await band.isVisible())
  relay.cut()
  await band
    .filter({ hasText: /figures are \d+ s old, of \d+ \w+ \d{4}, \d\d:\d\d:\d\d \S+\./ })
    .waitFor()
  const enabled = page.locator('button:not([aria-disabled=true]):visible')
  t.equal(await enabled.count(), 0)
  await row.click({ force: true })
  t.notOk(await page.locator('#detail').isVisible(), 'a button that is off does nothing')
  await page.getByRole('button', { name: 'Start a stream' }).click({ force: true })
  t.equal(await page.getByRole('dialog').count(), 0)
  t.strictSame(await findFaults(page), [])
  relay.join()
  await band.waitFor({ state: 'hidden' })
  await row.click()
  await page.getByRole('heading', { name: 'studio-1' }).waitFor()
  t.strictSame(errors, [])
})

t.test('after a restart the page connects again, and the login says why', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const options = { admin: { password: PASSWORD } }
  const first = await startService(t, options)
  const { page, errors } = await openDashboard(t, first.url)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('No streams').waitFor()
  // As in another tab.
  await page.evaluate(
    `fetch('logout', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })`,
  )
  await page.getByText('The session has ended').waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('No streams').waitFor()
  const port = first.server.httpPort
  await first.server.close()
  await page.locator('#unreachable', { hasText: 'No data from the service.' }).waitFor()
  await startService(t, { ...options, http: { port } })
  const reason = page.getByText('The service has been restarted or has another password')
  await reason.waitFor()
  t.strictSame(await findFaults(page), [])
  await page.reload()
  await reason.waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('No streams').waitFor()
  t.strictSame(errors, [])
})

t.test('a node of a cluster shows what others have', async (t) => {
  if (!requireTool(t, 'chromium', 'redis-server')) return
  const cluster = await startCluster(t, { admin: { password: PASSWORD } })
  const [a, b] = [await cluster.startNode(), await cluster.startNode()]
  encodeTo(t, b, await cluster.startStream('studio'))
  const { page, errors } = await openDashboard(t, a.publicUrl)
  await page.fill('#password', PASSWORD)
  await page.keyboard.press('Enter')
  const nodes = async () => (await page.locator('#node-rows').innerText()).split(/\s+/)
  await until('both, one with the stream', async () => {
    const words = await nodes()
    const streamsOf = (url: string) => words[words.indexOf(url) + 2]
    return streamsOf(a.publicUrl) === '0' && streamsOf(b.publicUrl) === '1'
  })
  await until('the key frame of the stream is drawn', () => isDrawn(page))
  await page.setViewportSize({ width: 360, height: 740 })
  t.equal(await pageWidth(page), 360)
  t.strictSame(await findFaults(page), [])
  await page.click('#rows button')
  await until('its node', async () =>
    (await page.locator('#facts').innerText()).includes(b.publicUrl),
  )
  await until('the edge with a viewer', async () => {
    await fetch(`${a.publicUrl}/video/studio/playlist.m3u8`)
    return /Edges\s+1, .* behind/i.test(await page.locator('#facts').innerText())
  })
  await page.getByRole('img', { name: /^Bitrate: now .+bit\/s, from / }).waitFor()
  t.equal(await pageWidth(page), 360)
  t.strictSame(errors, [])
})
