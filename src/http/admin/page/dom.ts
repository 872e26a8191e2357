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
  button.setAttribute('aria-disabled', String(isDisabled))
}

export function isDisabled(button: Element): boolean {
  return button.getAttribute('aria-disabled') === 'true'
}

/** Calls `act` when a button is pressed that is not disabled. */
export function onPress(id: string, act: () => void): void {
  const button = byId(id)
  button.addEventListener('click', () => {
    if (!isDisabled(button)) act()
  })
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
