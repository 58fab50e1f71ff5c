// The panel of readers: groups, queues, dead letters and their way back.
import { ask } from "./api.js";
import { announce, empty, h, scrolled, sure, trouble } from "./dom.js";
import { count, plural } from "./format.js";
import { every } from "./polling.js";
import { recordTable } from "./records.js";

export function readersPanel(main) {
  const [groups, queues, letters] = [h("div"), h("div"), h("div", { class: "panel" })];
  const part = (id, title, text, ...children) => h("section", { class: "panel", "aria-labelledby": id },
    h("header", {}, h("h2", { id, tabindex: "-1", text: title }), h("p", { text })), ...children);
  main.replaceChildren(
    part("groups", "Groups", "share topics among their members, each record once for every group", groups),
    part("queues", "Queues", "hand out messages one by one, until they are acknowledged", queues, letters));
  const shown = {};
  const show = (name, place, found, make) => {
    const version = JSON.stringify(found);
    if (shown[name] === version) return; // what is under the pointer or the focus stays
    shown[name] = version;
    place.replaceChildren(make(found));
  };
  const refresh = async () => {
    const [some, others] = await Promise.all([ask("groups"), ask("queues")]);
    show("groups", groups, some.groups, groupTable);
    show("queues", queues, others.queues, (found) => queueTable(found, (queue) => showLetters(letters, queue, refresh)));
  };
  return every(2000, refresh, (error) => groups.replaceChildren(trouble(error)));
}

const heads = (...names) => h("thead", {}, h("tr", {}, ...names.map((name) => {
  const number = name.startsWith("#");
  return h("th", { scope: "col", class: number ? "number" : null, text: number ? name.slice(1) : name });
})));
const number = (value) => h("td", { class: "number", text: count(value) });

function groupTable(groups) {
  if (!groups.length) return empty("No group reads topics of this pipeline.");
  const lines = groups.flatMap((group) => group.partitions.map((each, at) => h("tr", {},
    at === 0 ? h("th", { scope: "rowgroup", rowspan: group.partitions.length }, group.name, h("span", { class: "kind muted", text: ` ${plural(group.members.length, "member")}` })) : null,
    h("td", { text: each.topic }), number(each.partition), number(each.committed), number(each.end), number(each.lag), h("td", { text: each.member ?? "nobody" }))));
  return scrolled("Groups", h("table", {}, heads("Group", "Topic", "#Partition", "#Next offset", "#End", "#Lag", "Read by"), h("tbody", {}, ...lines)));
}

function queueTable(queues, open) {
  if (!queues.length) return empty("There are no queues over topics of this pipeline.");
  const lines = queues.map((queue) => h("tr", {},
    h("th", { scope: "row", text: queue.name }), h("td", { text: queue.topic }), number(queue.waiting), number(queue.in_flight), number(queue.dead),
    h("td", { text: `at most ${plural(queue.deliveries, "time")}, again after ${queue.visibility}` }),
    h("td", {}, h("button", { type: "button", disabled: queue.dead === 0, "aria-label": `Dead letters of ${queue.name}`, text: "Dead letters", on: { click: () => open(queue) } }))));
  return scrolled("Queues", h("table", {}, heads("Queue", "Topic", "#Waiting", "#With workers", "#Dead", "Delivers", ""), h("tbody", {}, ...lines)));
}

async function showLetters(place, queue, refresh) {
  try {
    const [{ letters }, { topics }] = await Promise.all([ask(`queues/${encodeURIComponent(queue.name)}/letters`), ask("topics")]);
    const topic = topics.find((each) => each.topic === queue.letters);
    place.replaceChildren(...lettersOf(queue, letters, topic, async (limit) => {
      if (await redriven(queue, queue.dead, limit, place)) {
        await refresh();
        place.replaceChildren();
      }
    }));
    place.querySelector("h3").focus();
  } catch (error) {
    place.replaceChildren(trouble(error));
  }
}

function lettersOf(queue, letters, topic, again) {
  const limit = h("input", { id: "limit", type: "number", min: "1", step: "1", placeholder: "all", inputmode: "numeric" });
  const reasons = h("table", { class: "reasons" }, heads("#Offset", "Reason", "#Deliveries"), h("tbody", {}, ...letters.map((letter) =>
    h("tr", {}, h("th", { scope: "row", class: "number", text: letter.offset }), h("td", { class: "wide", text: letter.reason }), number(letter.deliveries)))));
  const records = letters.map((letter) => ({ ...letter.record, headers: {} }));
  return [
    h("h3", { tabindex: "-1", text: `Dead letters of ${queue.name}` }),
    scrolled(`Why messages of ${queue.name} died`, reasons),
    topic && h("details", {}, h("summary", { text: "What is in them" }), recordTable(topic, records)),
    h("form", { class: "bar", on: { submit: (event) => { event.preventDefault(); again(limit.value ? Number(limit.value) : null); } } },
      h("div", { class: "field" }, h("label", { for: "limit", text: "How many, from the oldest on" }), limit),
      h("button", { type: "submit", class: "main", text: "Deliver again" })),
  ].filter(Boolean);
}

async function redriven(queue, there, limit, place) {
  const some = limit === null ? "all dead letters" : plural(Math.min(limit, there), "dead letter");
  if (!await sure("Deliver again?", `Workers of queue ${queue.name} get ${some} again, as if for the first time.`, "Deliver again")) return false;
  try {
    const done = await ask(`queues/${encodeURIComponent(queue.name)}/redrive`, { body: { limit } });
    announce(`${plural(done.redriven, "dead letter")} of ${queue.name} will be delivered again`);
    return true;
  } catch (error) {
    place.append(trouble(error));
    return false;
  }
}
