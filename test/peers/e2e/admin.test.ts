/**
 * The dashboard in a browser: what an operator does with it, on a desktop, on a phone, and with a keyboard alone.
 */
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openBrowser } from '../support/browser.ts'
import { encodeTo, startCluster } from '../support/cluster.ts'
import { start, type Program } from '../../support/process.ts'
import { startService } from '../../support/service.ts'
import { requireTool } from '../support/tools.ts'
import { until } from '../../support/until.ts'

const PASSWORD = 'correct horse battery staple'

const SOURCE = [
  ...['-v', 'error', '-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'],
  ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '30'],
  ...['-b:v', '500k', '-f', 'mpegts'],
]

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string }[]
}

/** Serious and critical findings of axe-core, in light and in dark. */
async function findFaults(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await page.evaluate<{ violations: Finding[] }>('axe.run(document)')
    const grave = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
    faults.push(
      ...grave.map(
        ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join()}`,
      ),
    )
  }
  return faults
}

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
  await page.getByLabel('Stream id').fill('studio')
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  const urlField = page.getByLabel('SRT URL for the encoder')
  await urlField.waitFor()
  const srtUrl = await urlField.inputValue()
  t.match(srtUrl, /^srt:\/\/127\.0\.0\.1:\d+\?streamid=mode=publish,rid=studio,token=/)
  t.ok(await page.getByRole('img', { name: 'QR code of the SRT URL' }).isVisible())
  t.strictSame(await findFaults(page), [], 'no fault in the dialog with the URL')
  await clipboardless(page)
  await page.getByRole('button', { name: 'Copy URL' }).click()
  await page.getByText('Copied.').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await until('the page keeps no credential', async () => (await urlField.inputValue()) === '')

  const encoder = publishTo(t, srtUrl)
  await until('the row is live', async () => (await cell(page, 'studio', 1)) === 'Live')
  t.match(await cell(page, 'studio', 2), /^127\.0\.0\.1:\d+$/)
  await until('a bitrate', async () => /^[\d.]+ [kM]bit\/s$/.test(await cell(page, 'studio', 3)))
  t.match(await cell(page, 'studio', 4), / ms$/)
  const announced = page.locator('#announcer', { hasText: 'studio: Live' })
  await announced.waitFor({ state: 'attached' })

  const row = page.getByRole('button', { name: 'studio', exact: true })
  await row.click()
  await page.getByRole('heading', { name: 'studio' }).waitFor()
  t.match(await page.locator('#facts').innerText(), /h264 320×180 30 fps/)
  await page.getByRole('img', { name: /^Bitrate: now .+bit\/s, from / }).waitFor()
  t.equal(await page.getByRole('img', { name: /in the last 10 minutes$/ }).count(), 4)
  t.strictSame(await findFaults(page), [], 'no fault in the list and the graphs')

  await until('the key frame is drawn', () => isDrawn(page))

  await page.getByRole('button', { name: 'Kick encoder' }).click()
  await page.getByLabel('Refuse encoders of this stream').selectOption('for 1 minute')
  await page.getByRole('button', { name: 'Kick', exact: true }).click()
  await encoder.exit
  await until('interrupted', async () => (await cell(page, 'studio', 1)) === 'Interrupted')
  t.equal(server.status('studio').status, 'INTERRUPTED')

  await page.setViewportSize({ width: 360, height: 740 })
  // Graphs follow the width of the page a frame later.
  await until('the page fits a phone', async () => (await pageWidth(page)) === 360)
  await page.getByRole('button', { name: 'New stream key' }).click()
  await page.getByRole('dialog').waitFor()
  const overflow = '(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)'
  const dialog = 'document.querySelector("dialog[open]")'
  t.equal(await page.evaluate(`${overflow}(${dialog})`), 0, 'a dialog fits a phone')
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
  t.equal(await page.locator('#rows tr').count(), 0)
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

t.test('the page connects again after a restart, and asks for the password', async (t) => {
  if (!requireTool(t, 'chromium')) return
  const options = { admin: { password: PASSWORD } }
  const first = await startService(t, options)
  const { page, errors } = await openDashboard(t, first.url)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('No streams').waitFor()
  const port = first.server.httpPort
  await first.server.close()
  await page.getByText('Connecting …').waitFor()
  await startService(t, { ...options, http: { port } })
  await page.getByLabel('Password').waitFor()
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
