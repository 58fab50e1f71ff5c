// The panel of topics: a list, and the records of the chosen one, from an offset or a time on.
import { Trouble, ask } from "./api.js";
import { announce, empty, h, trouble } from "./dom.js";
import { count, plural } from "./format.js";
import { recordTable } from "./records.js";

const LIMIT = 50;
const ROLES = { source: "Sources", changes: "Changes of views", late: "Late rows", letters: "Dead letters" };

export function topicsPanel(main, name) {
  let over = false;
  ask("topics").then(({ topics }) => {
    if (over) return;
    const known = topics.find((each) => each.topic === name) ?? topics.find((each) => each.relations.includes(name));
    const topic = known ?? (name ? null : topics[0]);
    const place = h("section", { class: "panel", "aria-labelledby": "topic" });
    main.replaceChildren(h("div", { class: "side" }, listOf(topics, topic), place));
    if (topic) browse(place, topic);
    else place.append(h("h2", { id: "topic", tabindex: "-1", text: "Topics" }), empty(name ? `There is no topic "${name}".` : "There are no topics yet."));
  }).catch((error) => over || main.replaceChildren(h("h2", { tabindex: "-1", text: "Topics" }), trouble(error)));
  return () => { over = true; };
}

function listOf(topics, chosen) {
  const parts = Object.entries(ROLES).flatMap(([role, title]) => {
    const mine = topics.filter((topic) => topic.role === role);
    return mine.length ? [h("h3", { text: title }), ...mine.map((topic) => entry(topic, topic === chosen))] : [];
  });
  return h("nav", { class: "list", "aria-label": "Topics" }, ...parts);
}

const entry = (topic, chosen) => h("a", { href: `#/topics/${encodeURIComponent(topic.topic)}`, "aria-current": chosen ? "page" : null },
  topic.topic, h("span", { class: "count", "aria-label": plural(topic.records, "record"), text: count(topic.records) }));

function browse(place, topic) {
  const parts = frame(place, topic);
  let page = null;
  async function seek(query) {
    try {
      page = await ask(`topics/${encodeURIComponent(topic.topic)}/records`, { query: { limit: LIMIT, partition: parts.partition(), ...query } });
      parts.show(page);
    } catch (error) {
      if (!(error instanceof Trouble)) throw error;
      parts.table.replaceChildren(trouble(error));
    }
  }
  const newest = () => seek({ from: -LIMIT });
  const go = { newest, oldest: () => seek({}), later: () => seek({ next: page.next }), earlier: () => seek({ from: Math.max(page.begin, page.records[0].offset - LIMIT) }) };
  for (const [name, act] of Object.entries(go)) parts[name].addEventListener("click", act);
  parts.byOffset.addEventListener("submit", (event) => { event.preventDefault(); seek({ from: parts.offset.value }); });
  parts.byTime.addEventListener("submit", (event) => { event.preventDefault(); seek({ time: `${parts.time.value}Z` }); });
  parts.chosen?.addEventListener("change", newest);
  newest();
}

function frame(place, topic) {
  const button = (text, more) => h("button", { type: "button", text, ...more });
  const chosen = topic.partitions > 1 ? h("select", { id: "partition" }, h("option", { value: "", text: "all" }), ...Array.from({ length: topic.partitions }, (_, at) => h("option", { value: at, text: at }))) : null;
  const offset = h("input", { id: "offset", type: "number", min: "0", step: "1", required: true, inputmode: "numeric" });
  const time = h("input", { id: "time", type: "datetime-local", step: "1", required: true });
  const byOffset = h("form", { class: "bar" }, h("div", { class: "field" }, h("label", { for: "offset", text: "From offset" }), offset), h("button", { type: "submit", text: "Go", "aria-label": "Go to the offset" }));
  const byTime = h("form", { class: "bar" }, h("div", { class: "field" }, h("label", { for: "time", text: "Appended since (UTC)" }), time), h("button", { type: "submit", text: "Go", "aria-label": "Go to the time" }));
  const [newest, oldest, earlier, later] = [button("Newest"), button("Oldest"), button("← Earlier"), button("Later →")];
  const [said, table] = [h("p"), h("div")];
  place.replaceChildren(
    h("header", {}, h("h2", { id: "topic", tabindex: "-1", text: topic.topic }), h("p", { text: `${plural(topic.records, "record")}, ${plural(topic.partitions, "partition")}` })),
    h("div", { class: "bar" }, chosen && h("div", { class: "field" }, h("label", { for: "partition", text: "Partition" }), chosen), byOffset, byTime, newest, oldest),
    table, h("div", { class: "pages" }, earlier, later, said));
  return {
    chosen, offset, time, byOffset, byTime, newest, oldest, earlier, later, table,
    partition: () => chosen?.value,
    show: (page) => show(page, topic, { chosen, offset, earlier, later, said, table }),
  };
}

function show(page, topic, { chosen, offset, earlier, later, said, table }) {
  const one = topic.partitions === 1 ? page.partitions[0] : page.partitions[chosen.value || -1];
  const [first, last] = [page.records[0], page.records.at(-1)];
  page.begin = one?.begin;
  if (one) offset.max = Math.max(0, one.end - 1);
  earlier.disabled = !one || !first || first.offset <= one.begin;
  later.disabled = page.next === null;
  table.replaceChildren(page.records.length ? recordTable(topic, page.records) : empty("There are no records here."));
  const where = one && first ? `offsets ${count(first.offset)} to ${count(last.offset)} of ${count(one.begin)} to ${count(one.end - 1)}` : plural(page.records.length, "record");
  said.textContent = where;
  announce(`${topic.topic}: ${where}`);
}
