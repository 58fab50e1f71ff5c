// The panel of views: a list, and the chosen one as a table that follows its changes.
import { Trouble, ask } from "./api.js";
import { announce, empty, h, scrolled, trouble } from "./dom.js";
import { count, plural } from "./format.js";
import { follow } from "./follow.js";
import { Pauses } from "./pauses.js";
import { plot, plotted } from "./plot.js";
import { Rows } from "./rows.js";

const LIMIT = 25;
const PLOTTED = 1000;
const PAUSE = 200;

export function viewsPanel(main, name, told) {
  const pauses = new Pauses();
  let end = () => {};
  let [over, waiting] = [false, null];
  const begin = () => ask("views").then(({ views }) => {
    if (over) return;
    pauses.reset();
    const view = views.find((each) => each.name === name) ?? (name ? null : views[0]);
    const place = h("section", { class: "panel", "aria-labelledby": "view" });
    main.replaceChildren(h("div", { class: "side" }, listOf(views, view), place));
    if (view) end = liveView(place, view, told, begin);
    else place.append(h("h2", { id: "view", tabindex: "-1", text: "Views" }), empty(name ? `There is no view "${name}".` : "There are no views yet."));
  }).catch((error) => {
    if (over) return;
    main.replaceChildren(h("h2", { tabindex: "-1", text: "Views" }), trouble(error));
    waiting = setTimeout(begin, pauses.next());
  });
  begin();
  return () => { over = true; clearTimeout(waiting); end(); };
}

function listOf(views, chosen) {
  return h("nav", { class: "list", "aria-label": "Views" }, ...views.map((view) =>
    h("a", { href: `#/views/${encodeURIComponent(view.name)}`, "aria-current": view === chosen ? "page" : null }, view.name)));
}

/**
 * Of one lineage: when rows of another come, whose columns may be others, it ends and `anew` begins another. While it
 * cannot be read or followed that is tried again, after pauses that grow until its changes come.
 */
function liveView(place, view, told, anew) {
  const asked = { order: null, descending: false, where: "", pages: [null] };
  const rows = new Rows(view, (column) => {
    const again = asked.order === column;
    change({ order: again && asked.descending ? null : column, descending: again && !asked.descending });
    rows.sorted(asked.order, asked.descending);
  });
  const parts = frame(place, view, rows);
  const drawn = plotted(view) && plot(view, plotted(view));
  if (drawn) parts.plot.append(drawn.element);
  const pauses = new Pauses();
  let [busy, again, over, stop, timer, waiting, known, lineage] = [false, null, false, null, null, null, "", null];

  /** Reads the page, with `after` as the batch there has left it; what differs from the same page before is marked. */
  async function load(after) {
    if (busy) { again = { after: after ?? again?.after }; return; }
    busy = true;
    clearTimeout(waiting);
    try {
      const question = JSON.stringify(asked);
      const order = asked.order && `${asked.order}${asked.descending ? " desc" : ""}`;
      const page = await ask(`views/${encodeURIComponent(view.name)}/rows`, { query: { limit: LIMIT, order, where: asked.where, next: asked.pages.at(-1), after } });
      if (over) return;
      lineage ??= page.position.lineage;
      if (page.position.lineage !== lineage) { end(); anew(); return; }
      const counts = rows.show(page.rows, { compare: known === question });
      known = question;
      parts.trouble.hidden = true;
      parts.said(asked.pages.length, page, counts);
      told({ position: page.position });
      if (drawn) drawn.update(await recent(view));
      if (!over) stop ??= follow(view.name, page.position.position, { moved, lost, gone });
    } catch (error) {
      const refused = error.status >= 400 && error.status < 500; // what was asked for makes no sense, and will not later
      if (stop === null) later(null);
      else if (!refused) later(after);
      if (!(error instanceof Trouble)) throw error;
      parts.trouble.hidden = false;
      parts.trouble.replaceChildren(trouble(error));
    } finally {
      busy = false;
      if (again && !over) {
        const next = again.after;
        again = null;
        load(next);
      }
    }
  }

  let changes = 0;
  function moved(found, position) {
    changes += found;
    if (timer === null) timer = setTimeout(() => {
      timer = null;
      announce(`${view.name}: ${plural(changes, "change")}`);
      changes = 0;
      load(position);
    }, PAUSE);
  }
  function lost(yes) {
    if (!yes) pauses.reset();
    parts.lost(yes);
  }
  function gone() {
    stop = null;
    later(null);
  }
  function later(after) {
    if (over) return;
    if (stop === null) parts.left();
    clearTimeout(waiting);
    waiting = setTimeout(() => load(after), pauses.next());
  }
  function end() {
    over = true;
    clearTimeout(timer);
    clearTimeout(waiting);
    stop?.();
  }
  function change(to) {
    Object.assign(asked, to, { pages: to.pages ?? [null] });
    load(null);
  }
  parts.form.addEventListener("submit", (event) => { event.preventDefault(); change({ where: parts.where.value.trim() }); });
  parts.older.addEventListener("click", () => change({ pages: asked.pages.slice(0, -1) }));
  parts.newer.addEventListener("click", () => change({ pages: [...asked.pages, parts.next()] }));
  load(null);
  return end;
}

async function recent(view) {
  const { time } = plotted(view);
  const query = { limit: PLOTTED, order: `${time} desc` };
  return (await ask(`views/${encodeURIComponent(view.name)}/rows`, { query })).rows;
}

function frame(place, view, rows) {
  const where = h("input", { id: "where", type: "text", spellcheck: "false", autocomplete: "off", placeholder: `${view.columns.at(-1).name} > 100` });
  const form = h("form", { class: "bar" }, h("div", { class: "field grow" }, h("label", { for: "where", text: "Only rows where (SQL)" }), where), h("button", { type: "submit", text: "Filter" }));
  const [older, newer] = [h("button", { type: "button", text: "← Back" }), h("button", { type: "button", text: "More →" })];
  const [said, state, troubles, plots] = [h("p"), h("p", { role: "status" }), h("div", { hidden: true }), h("div")];
  let next = null;
  place.replaceChildren(
    h("header", {}, h("h2", { id: "view", tabindex: "-1", text: view.name }), state),
    plots, form, troubles, scrolled(`Rows of ${view.name}`, rows.element), h("div", { class: "pages" }, older, newer, said));
  return {
    form, where, older, newer, trouble: troubles, plot: plots,
    next: () => next,
    lost: (yes) => { state.textContent = yes ? "the server does not answer; trying again" : "follows the changes"; },
    left: () => { state.textContent = "does not follow the changes; trying again"; },
    said: (page, found, counts) => {
      next = found.next;
      older.disabled = page === 1;
      newer.disabled = next === null;
      const marks = [counts.new && `${count(counts.new)} new`, counts.changed && `${count(counts.changed)} changed`, counts.gone && `${count(counts.gone)} gone`].filter(Boolean);
      said.textContent = `${page > 1 ? `page ${page}, ` : ""}${plural(found.rows.length, "row")}${next ? " and more" : ""}${marks.length ? ` · ${marks.join(", ")}` : ""}`;
    },
  };
}
