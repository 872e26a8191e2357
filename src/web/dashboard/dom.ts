/**
 * Elements of the page.
 *
 * @module
 */

/** The element with an id, which index.html has. */
export function byId(id: string): HTMLElement
export function byId<T extends Element>(id: string, type: new () => T): T
export function byId(id: string): Element {
  return document.querySelector(`#${id}`)!
}

/** Changes the text only if it is another one: a screen reader may be reading it. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Disables a button, which keeps the focus that `disabled` would take away. */
export function setDisabled(button: Element, isDisabled: boolean): void {
  button.toggleAttribute('data-off', isDisabled)
  refresh(button)
}

export function isDisabled(button: Element): boolean {
  return button.getAttribute('aria-disabled') === 'true'
}

/** Whether the service does not answer, which disables all buttons but those with `data-local`. */
let isCutOff = false

export function setCutOff(isOff: boolean): void {
  isCutOff = isOff
  for (const button of document.querySelectorAll('button')) refresh(button)
}

function refresh(button: Element): void {
  const isOff = isCutOff && !button.hasAttribute('data-local')
  button.setAttribute('aria-disabled', String(isOff || button.hasAttribute('data-off')))
}

// Also catches Enter in a form, which clicks its button.
document.addEventListener(
  'click',
  (event) => {
    const button = event.target instanceof Element ? event.target.closest('button') : null
    if (button === null || !isDisabled(button)) return
    event.preventDefault()
    event.stopImmediatePropagation()
  },
  true,
)

export function onPress(id: string, act: () => void): void {
  byId(id).addEventListener('click', act)
}

/** Shows a name, or a sentence with one, that breaks behind its punctuation, and elsewhere only where a part does not fit a line. */
export function setName(element: Element, name: string): void {
  if (element.textContent === name) return
  // With line break opportunities in it, the text would be read with spaces.
  element.ariaLabel = name
  const parts = name.split(/(?<=[._~-])/)
  element.replaceChildren(
    ...parts.flatMap((part, index) => (index > 0 ? [make('wbr'), part] : [part])),
  )
}

/** Shows figures by name in a `dl`; changes only the values that are new. */
export function showFigures(list: Element, figures: readonly (readonly [string, string])[]): void {
  const names = [...list.querySelectorAll('dt')].map(({ textContent }) => textContent)
  if (names.join() !== figures.map(([name]) => name).join()) {
    list.replaceChildren(
      ...figures.map(([name]) => make('div', {}, make('dt', { textContent: name }), make('dd'))),
    )
  }
  const values = list.querySelectorAll('dd')
  figures.forEach(([, value], index) => setText(values[index]!, value))
}

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}
