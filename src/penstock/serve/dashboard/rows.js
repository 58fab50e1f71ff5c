// The rows of a view as a table that follows: what came, what changed and what left is marked, for a moment by colour and
// by a sign. Rows keep their place on the screen: what has not changed is not touched.
import { h } from "./dom.js";
import { isNumeric, kindOf, shown } from "./format.js";

const MARKED = 4000;
const LEAVING = 1600;
const SIGNS = { new: ["+", "new"], changed: ["±", "changed"], gone: ["−", "gone"] };

export class Rows {
  /** `sort(column)` is called when the head of a column is pressed. */
  constructor(view, sort) {
    this.view = view;
    this.shown = new Map();
    this.body = h("tbody");
    this.heads = new Map(view.columns.map((column) => [column.name, this.#head(column, sort)]));
    this.element = h("table", {},
      h("caption", { class: "unseen", text: `Rows of ${view.name}` }),
      h("thead", {}, h("tr", {}, h("th", { class: "sign", scope: "col" }, h("span", { class: "unseen", text: "Change" })), ...this.heads.values())),
      this.body);
  }

  #head(column, sort) {
    const key = this.view.key.includes(column.name) ? " · key" : "";
    return h("th", { scope: "col", class: isNumeric(column) ? "number" : null },
      h("button", { type: "button", on: { click: () => sort(column.name) } }, column.name),
      h("span", { class: "kind", text: kindOf(column) + key }));
  }

  /** Shows by which column rows are sorted; null: by the key. */
  sorted(name, descending) {
    for (const [each, head] of this.heads) {
      const button = head.querySelector("button");
      const mine = each === name;
      head.toggleAttribute("aria-sort", mine);
      if (mine) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      button.toggleAttribute("data-sorted", mine);
      button.textContent = mine ? `${each} ${descending ? "↓" : "↑"}` : each;
    }
  }

  /** Shows rows; with `compare`, what differs from those that were shown is marked. How many came, changed and left. */
  show(rows, { compare }) {
    const before = this.shown;
    const counts = { new: 0, changed: 0, gone: 0 };
    this.shown = new Map();
    const lines = keysOf(this.view, rows).map((key, at) => {
      const old = before.get(key);
      const line = old?.line ?? this.#line();
      const changed = this.#fill(line, rows[at], old?.row, compare && old);
      this.shown.set(key, { row: rows[at], line });
      if (compare && !old) this.#mark(line, "new", counts);
      else if (changed) this.#mark(line, "changed", counts);
      return line;
    });
    const leaving = compare ? [...before].filter(([key]) => !this.shown.has(key)).map(([, { line }]) => line) : [];
    const at = new Map(leaving.map((line) => [line, [...this.body.children].indexOf(line)]));
    for (const line of leaving) this.#leave(line, counts);
    for (const line of leaving) lines.splice(Math.min(lines.length, at.get(line)), 0, line);
    this.#place(lines);
    return counts;
  }

  /** Puts lines in their order; those that stand right are not moved, so that nothing flickers. */
  #place(lines) {
    const wanted = new Set(lines);
    for (const line of [...this.body.children]) if (!wanted.has(line)) line.remove();
    lines.forEach((line, at) => {
      if (this.body.children[at] !== line) this.body.insertBefore(line, this.body.children[at] ?? null);
    });
  }

  #line() {
    return h("tr", {}, h("td", { class: "sign" }), ...this.view.columns.map((column) => h("td", { class: isNumeric(column) ? "number" : null })));
  }

  #fill(line, row, old, compare) {
    let changed = false;
    this.view.columns.forEach((column, at) => {
      const value = row[column.name];
      const cell = line.children[at + 1];
      if (old && JSON.stringify(old[column.name]) === JSON.stringify(value)) return;
      cell.textContent = shown(value);
      cell.classList.toggle("null", value === null);
      if (compare) {
        restart(cell, "changed");
        changed = true;
      }
    });
    return changed;
  }

  #mark(line, kind, counts) {
    counts[kind] += 1;
    clearTimeout(line.timer);
    line.classList.remove("new", "changed");
    restart(line, kind);
    sign(line, kind);
    line.timer = setTimeout(() => {
      line.classList.remove(kind);
      line.querySelectorAll(".changed").forEach((cell) => cell.classList.remove("changed"));
      sign(line, null);
    }, MARKED);
  }

  #leave(line, counts) {
    counts.gone += 1;
    clearTimeout(line.timer);
    line.className = "gone";
    sign(line, "gone");
    line.timer = setTimeout(() => line.remove(), LEAVING);
  }
}

function sign(line, kind) {
  const [text, label] = kind ? SIGNS[kind] : ["", null];
  line.firstChild.replaceChildren(...(kind ? [h("span", { "aria-hidden": "true", text }), h("span", { class: "unseen", text: label })] : []));
}

/** Begins an animation anew. */
function restart(element, name) {
  element.classList.remove(name);
  void element.offsetWidth;
  element.classList.add(name);
}

/** What makes a row the same row: its key; in a bag all its values, and which of its equals it is. */
function keysOf(view, rows) {
  const seen = new Map();
  return rows.map((row) => {
    const names = view.key.length ? view.key : view.columns.map((column) => column.name);
    const key = JSON.stringify(names.map((name) => row[name]));
    if (view.key.length) return key;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return `${key} ${seen.get(key)}`;
  });
}
