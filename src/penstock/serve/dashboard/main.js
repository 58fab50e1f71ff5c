// The page: which panel is shown follows from the address, and what is known of the pipeline stands above it.
import { ask, offerToForget } from "./api.js";
import { byId, h } from "./dom.js";
import { pipelinePanel } from "./pipeline.js";
import { every } from "./polling.js";
import { readersPanel } from "./readers.js";
import { topicsPanel } from "./topics.js";
import { viewsPanel } from "./views.js";

const PANELS = { pipeline: pipelinePanel, views: viewsPanel, topics: topicsPanel, readers: readersPanel };
const STATES = { running: "running", still: "not running", lost: "the server does not answer" };
let end = () => {};
let seen = null;

function show() {
  const [, panel = "pipeline", name = ""] = location.hash.split("/");
  const chosen = PANELS[panel] ? panel : "pipeline";
  end();
  const main = byId("main");
  main.replaceChildren(h("p", { class: "muted", text: "asking…" }));
  document.querySelectorAll("[data-panel]").forEach((link) => {
    if (link.dataset.panel === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  end = PANELS[chosen](main, decodeURIComponent(name), told);
  if (seen !== null && seen !== location.hash) main.focus({ preventScroll: true });
  seen = location.hash;
}

/** What panels come to know that stands outside of them. */
function told(known) {
  if (known?.name) byId("pipeline-name").textContent = known.name;
  if (known && "running" in known) state(known.running ? "running" : "still");
  if (known?.position) byId("position").textContent = `position ${known.position.position}, batch ${known.position.batch ?? "–"}`;
}

function state(name) {
  if (byId("state").dataset.state === name) return;
  byId("state").dataset.state = name;
  byId("state-text").textContent = STATES[name];
}

async function look() {
  const { pipeline, position } = await ask("views");
  told({ name: pipeline, position });
  document.title = `${pipeline} · Penstock`;
  told(await ask("pipeline").catch((error) => { if (error.status === 404) return { running: false }; throw error; }));
}

addEventListener("hashchange", show);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which panel is shown
  byId("main").focus();
});
offerToForget();
show();
every(3000, look, (error) => state(error.status ? "still" : "lost"));
