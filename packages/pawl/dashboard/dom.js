/** Elements of the page. Whatever comes from outside gets in as text, and in no other way. */

/**
 * An element with its attributes and children; a child that is no element is text.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Readonly<Record<string, string>>} attributes
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * The element of `index.html` with this id.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`The page has no ${type.name} #${id}.`);
  return found;
}

/**
 * Changes a text only where it is another: what is selected stays so, and nothing is read aloud twice.
 *
 * @param {Element | undefined} target
 * @param {string} text
 */
export function say(target, text) {
  if (target !== undefined && target.textContent !== text) target.textContent = text;
}

/**
 * Terms and what they are now, in a list of definitions.
 *
 * @param {HTMLElement} list
 * @param {readonly (readonly [term: string, value: string, note?: string])[]} entries
 */
export function define(list, entries) {
  while (list.children.length > entries.length) list.lastElementChild?.remove();
  for (const [i, [term, value, note = '']] of entries.entries()) {
    let entry = list.children[i];
    if (entry === undefined) {
      entry = element('div', {}, element('dt'), element('dd'), element('dd', { class: 'note' }));
      list.append(entry);
    }
    const [title, now, more] = entry.children;
    say(title, term);
    say(now, value);
    say(more, note);
  }
}
