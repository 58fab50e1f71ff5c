// The panel of the pipeline: figures, graph, timeline.
import { ask } from "./api.js";
import { empty, h, scrolled, trouble } from "./dom.js";
import { RECENT_SECONDS, factsOf, total } from "./facts.js";
import { bytes, count, moment, rate, span } from "./format.js";
import { graph, linesOf, onLevel } from "./graph.js";
import { every } from "./polling.js";
import { timeline } from "./timeline.js";

const LIMIT = 200;

export function pipelinePanel(main, _name, told) {
  const figures = h("dl", { class: "figures", "aria-label": "Now" });
  const place = h("div", { class: "panel" });
  const bars = timeline();
  const batchesPlace = h("section", { class: "panel", "aria-labelledby": "batches" },
    h("header", {}, h("h2", { id: "batches", text: "Batches" }), h("p", { text: "how long each took, by phase; arrow keys go from one to the next" })), bars.element);
  main.replaceChildren(
    h("section", { class: "panel", "aria-labelledby": "now" }, h("header", {}, h("h2", { id: "now", tabindex: "-1", text: "Pipeline" })), figures, place),
    batchesPlace);
  let drawn = null;
  return every(1000, async () => {
    const [plan, batches] = await Promise.all([ask("pipeline").catch(missing), ask("batches", { query: { limit: LIMIT } })]);
    const facts = factsOf(batches);
    told(plan);
    figures.replaceChildren(...figuresOf(facts));
    batchesPlace.hidden = batches.batches.length === 0;
    bars.update(batches.batches);
    const version = JSON.stringify([plan?.nodes, plan?.edges]);
    if (drawn?.version !== version) {
      drawn = plan ? { version, ...drawPlan(place, plan) } : { version, update: () => {} };
      if (!plan) place.replaceChildren(empty("Nothing has run yet; a run writes down its plan when it begins.", "penstock run --serve"));
    }
    drawn.update(facts);
  }, (error) => place.replaceChildren(trouble(error)));
}

function missing(error) {
  if (error.status === 404) return null;
  throw error;
}

function figuresOf(facts) {
  const figure = (name, value, unit, note) => h("div", {}, h("dt", { text: name }), h("dd", {}, value, unit && h("small", { text: unit }), note && h("p", { class: "note", text: note })));
  const size = facts.stateBytes === null ? ["–", ""] : bytes(facts.stateBytes);
  const took = facts.seconds === null ? ["–", ""] : span(facts.seconds);
  const delay = facts.delay === null ? ["–", ""] : span(facts.delay);
  return [
    figure("Records read", rate(total(facts.records) / RECENT_SECONDS), "/s"),
    figure("Changes", rate(total(facts.changes) / RECENT_SECONDS), "/s"),
    figure("Lag", count(facts.lag), facts.lag === 1 ? "frame" : "frames"),
    figure("Time of a batch", ...took),
    figure("Watermark delay", ...delay),
    figure("State", ...size),
    figure("Late rows", count(total(facts.late)), facts.letters ? `· ${count(facts.letters)} dead letters` : ""),
  ];
}

function drawPlan(place, plan) {
  const about = h("div", { class: "card", "aria-live": "polite", hidden: true });
  const drawing = graph(plan, (node) => {
    about.hidden = false;
    about.replaceChildren(...aboutNode(node));
  });
  const rows = plan.nodes.map((node) => [node, h("tr")]);
  const table = h("table", {},
    h("thead", {}, h("tr", {}, ...["Node", "What", "Now", "Feeds"].map((text) => h("th", { scope: "col", text })))),
    h("tbody", {}, ...rows.map(([, row]) => row)));
  place.replaceChildren(drawing.element, about, h("details", {}, h("summary", { text: "The graph as a table" }), scrolled("The graph as a table", table)));
  return {
    update: (facts) => {
      drawing.update(facts);
      for (const [node, row] of rows) row.replaceChildren(...cellsOf(plan, node, facts));
    },
  };
}

function aboutNode(node) {
  return [
    h("h3", { text: `${node.title} ${node.id}` }),
    h("p", { text: node.detail }),
    h("p", { class: "muted", text: [node.level === null ? "" : `Level ${node.level}`, node.state && `state: ${node.state}`].filter(Boolean).join(" · ") }),
    node.warning && h("p", { text: `⚠ ${node.warning}` }),
  ].filter(Boolean);
}

function cellsOf(plan, node, facts) {
  const [first, second] = linesOf(node, facts);
  const mark = facts.watermarks[node.title];
  const now = node.kind === "operator" ? second : [first, node.kind === "source" && mark ? `watermark ${moment(mark)}` : second].filter(Boolean).join("; ");
  const feeds = plan.edges.filter(([from]) => from === node.id).map(([, to]) => plan.nodes.find((each) => each.id === to)?.title ?? to);
  return [h("th", { scope: "row", text: node.title }), h("td", { class: "wide", text: `${node.kind}${onLevel(node)}: ${node.detail}` }), h("td", { text: now }), h("td", { text: feeds.join(", ") })];
}
