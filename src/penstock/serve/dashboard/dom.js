// Elements of the page, made without markup: what a record holds can never become code.
const SVG = "http://www.w3.org/2000/svg";

function dress(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties, ...children) => dress(document.createElement(tag), properties, children);
export const s = (tag, properties, ...children) => dress(document.createElementNS(SVG, tag), properties, children);
export const byId = (id) => document.getElementById(id);

let waiting = null;
let spoken_at = 0;
const PAUSE = 4000;

/** Tells who listens to the page; not more often than one can listen, and then only the newest. */
export function announce(text) {
  clearTimeout(waiting);
  const wait = Math.max(0, spoken_at + PAUSE - Date.now());
  waiting = setTimeout(() => {
    spoken_at = Date.now();
    byId("live").textContent = text;
  }, wait);
}

/** What went wrong, in place of what was asked for. */
export function trouble(error) {
  return h("div", { class: "empty", role: "alert" },
    h("p", { class: "trouble", text: error.message }),
    error.detail && h("p", { text: error.detail }),
    error.hint && h("p", { text: error.hint }));
}

export function empty(text, command) {
  return h("div", { class: "empty" }, h("p", { text }), command && h("p", {}, h("code", { text: command })));
}

/** A table that can be scrolled with the keyboard where it is wider than the page. */
export function scrolled(label, table) {
  table.caption ?? table.prepend(h("caption", { class: "unseen", text: label }));
  return h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, table);
}

/** Asks before something is done; whether it shall be. */
export function sure(title, text, yes) {
  const dialog = byId("sure");
  byId("sure-title").textContent = title;
  byId("sure-text").textContent = text;
  byId("sure-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((answer) => {
    dialog.onclose = () => dialog.open || answer(dialog.returnValue === "yes"); // it may tell late of an earlier closing
  });
}
