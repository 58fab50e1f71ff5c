// The panel of readers: groups, queues and sinks, dead letters and their way back.
import { ask } from "./api.js";
import { announce, empty, h, scrolled, sure, trouble } from "./dom.js";
import { count, plural } from "./format.js";
import { every } from "./polling.js";
import { recordTable } from "./records.js";

export function readersPanel(main) {
  const [groups, queues, sinks] = [h("div"), h("div"), h("div")];
  const [letters, unsent] = [h("div", { class: "panel" }), h("div", { class: "panel" })];
  const part = (id, title, text, ...children) => h("section", { class: "panel", "aria-labelledby": id },
    h("header", {}, h("h2", { id, tabindex: "-1", text: title }), h("p", { text })), ...children);
  main.replaceChildren(
    part("groups", "Groups", "share topics among their members, each record once for every group", groups),
    part("queues", "Queues", "hand out messages one by one, until they are acknowledged", queues, letters),
    part("sinks", "Sinks", "tell others of the changes of a view", sinks, unsent));
  const shown = {};
  const show = (name, place, found, make) => {
    const version = JSON.stringify(found);
    if (shown[name] === version) return; // what is under the pointer or the focus stays
    shown[name] = version;
    place.replaceChildren(make(found));
  };
  const asked = (name, place, make) => async () => show(name, place, (await ask(name))[name], make);
  const failed = (name, place) => ({ message, detail, hint }) => show(name, place, { message, detail, hint }, trouble);
  const someQueues = asked("queues", queues, (found) => queueTable(found, (queue) => showLetters(letters, ofQueue(queue), someQueues)));
  const someSinks = asked("sinks", sinks, (found) => sinkTable(found, (sink) => showLetters(unsent, ofSink(sink), someSinks)));
  const ends = [ // each by itself: one that cannot be shown hides no other
    every(2000, asked("groups", groups, groupTable), failed("groups", groups)),
    every(2000, someQueues, failed("queues", queues)),
    every(2000, someSinks, failed("sinks", sinks)),
  ];
  return () => ends.forEach((end) => end());
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

function sinkTable(sinks, open) {
  if (!sinks.length) return empty("No view of this pipeline has a webhook or e-mails.");
  const lines = sinks.map((sink) => h("tr", {},
    h("th", { scope: "row", text: sink.view }), h("td", { text: sink.sink }), number(sink.dead),
    h("td", {}, h("button", { type: "button", disabled: sink.dead === 0, "aria-label": `Dead letters of ${ofSink(sink).name}`, text: "Dead letters", on: { click: () => open(sink) } }))));
  return scrolled("Sinks", h("table", {}, heads("View", "Sink", "#Dead", ""), h("tbody", {}, ...lines)));
}

// Whose dead letters: where they are asked for, and what is said of their way back.
const ofQueue = (queue) => ({
  name: queue.name, path: `queues/${encodeURIComponent(queue.name)}`, topic: queue.letters, dead: queue.dead, limit: "limit", tries: "Deliveries",
  question: (some) => `Workers of queue ${queue.name} get ${some} again, as if for the first time.`, done: "will be delivered again",
});
const ofSink = ({ view, sink, dead, letters }) => ({
  name: `${sink} of ${view}`, path: `sinks/${encodeURIComponent(view)}/${sink}`, topic: letters, dead, limit: "limit-of-sink", tries: "Attempts",
  question: (some) => `The ${sink} of ${view} sends ${some} again, each under the id that it had.`, done: "taken", most: 100, // as many as the server sends at once
});

async function showLetters(place, box, refresh) {
  try {
    const [{ letters }, { topics }] = await Promise.all([ask(`${box.path}/letters`), ask("topics")]);
    const topic = topics.find((each) => each.topic === box.topic);
    place.replaceChildren(...lettersOf(box, letters, topic, async (limit) => {
      if (await redriven(box, limit, place)) {
        await refresh();
        place.replaceChildren();
      }
    }));
    place.querySelector("h3").focus();
  } catch (error) {
    place.replaceChildren(trouble(error));
  }
}

function lettersOf(box, letters, topic, again) {
  const limit = h("input", { id: box.limit, type: "number", min: "1", step: "1", placeholder: "all", inputmode: "numeric" });
  const reasons = h("table", { class: "reasons" }, heads("#Offset", "Reason", `#${box.tries}`), h("tbody", {}, ...letters.map((letter) =>
    h("tr", {}, h("th", { scope: "row", class: "number", text: letter.offset }), h("td", { class: "wide", text: letter.reason }), number(letter.deliveries ?? letter.attempts)))));
  const records = letters.map((letter) => ({ ...letter.record, headers: {} }));
  return [
    h("h3", { tabindex: "-1", text: `Dead letters of ${box.name}` }),
    scrolled(`Why messages of ${box.name} died`, reasons),
    topic && h("details", {}, h("summary", { text: "What is in them" }), recordTable(topic, records)),
    h("form", { class: "bar", on: { submit: (event) => { event.preventDefault(); again(limit.value ? Number(limit.value) : null); } } },
      h("div", { class: "field" }, h("label", { for: box.limit, text: "How many, from the oldest on" }), limit),
      h("button", { type: "submit", class: "main", text: "Deliver again" })),
  ].filter(Boolean);
}

async function redriven(box, limit, place) {
  const most = Math.min(box.dead, box.most ?? Infinity);
  const some = limit === null && most === box.dead ? "all dead letters" : plural(Math.min(limit ?? most, most), "dead letter");
  if (!await sure("Deliver again?", box.question(some), "Deliver again")) return false;
  try {
    const done = await ask(`${box.path}/redrive`, { body: { limit } });
    announce(`${plural(done.redriven, "dead letter")} of ${box.name} ${box.done}${done.left ? `, ${count(done.left)} left` : ""}`);
    return true;
  } catch (error) {
    place.append(trouble(error));
    return false;
  }
}
