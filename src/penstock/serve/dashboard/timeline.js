// The timeline of batches: a bar for each, as high as it took, stacked by phase. With the arrow keys, or the pointer, one
// is chosen, and read out.
import { h, s } from "./dom.js";
import { clock, plural, span } from "./format.js";
import { total } from "./facts.js";

const PHASES = ["planning", "computing", "appending", "committing", "storing"];
const [HIGH, LEFT, RIGHT, FOOT, HEAD] = [190, 52, 3, 12, 18];
const FAR = 4; // a batch that took so many times as long as others goes beyond the scale
const MOST = 100;

/** `{element, update(batches)}` */
export function timeline() {
  const drawing = s("svg", { tabindex: "0", role: "slider", "aria-label": "Batch" });
  const reading = h("p", { class: "reading" });
  const legend = h("ul", { class: "legend", "aria-label": "Phases of a batch" });
  let batches = [];
  let chosen = null; // null: the newest

  const show = () => {
    const here = Math.max(0, chosen === null ? batches.length - 1 : batches.findIndex((batch) => batch.batch === chosen));
    const batch = batches[here];
    draw(drawing, batches, here);
    if (!batch) return;
    reading.replaceChildren(...sentence(batch));
    drawing.setAttribute("aria-valuemin", batches[0].batch);
    drawing.setAttribute("aria-valuemax", batches.at(-1).batch);
    drawing.setAttribute("aria-valuenow", batch.batch);
    drawing.setAttribute("aria-valuetext", reading.textContent);
  };
  const go = (at) => {
    const found = batches[Math.min(batches.length - 1, Math.max(0, at))];
    chosen = !found || found === batches.at(-1) ? null : found.batch;
    show();
  };
  const at = () => (chosen === null ? batches.length - 1 : batches.findIndex((batch) => batch.batch === chosen));
  drawing.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at() - 1, ArrowDown: at() - 1, ArrowRight: at() + 1, ArrowUp: at() + 1, Home: 0, End: Infinity }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  });
  drawing.addEventListener("pointermove", (event) => {
    const frame = drawing.getBoundingClientRect();
    go(Math.floor((event.clientX - frame.left - beginning(batches, frame.width)) / step(batches, frame.width)));
  });
  drawing.addEventListener("pointerleave", () => go(Infinity));
  return {
    element: h("div", { class: "timeline panel" }, h("div", { class: "card" }, legend, drawing, reading)),
    update: (found) => {
      batches = found.slice(-MOST);
      legend.replaceChildren(...phasesOf(batches).map((name) => h("li", {}, h("i", { class: name }), name)));
      show();
    },
  };
}

const phasesOf = (batches) => PHASES.filter((name) => batches.some((batch) => batch.phases[name] > 0));
const step = (batches, wide) => Math.min(26, (wide - LEFT - RIGHT) / Math.max(1, batches.length));
/** The newest stand at the right end. */
const beginning = (batches, wide) => wide - RIGHT - batches.length * step(batches, wide);
const lasted = (batch) => total(batch.phases);

/** The top of the scale: above all batches, but for those that took far longer than most. */
function topOf(batches) {
  const spans = batches.map(lasted).sort((one, other) => one - other);
  const usual = spans[Math.floor(spans.length / 2)] ?? 0;
  return niceAbove(Math.max(0.001, ...spans.filter((each) => each <= FAR * usual)));
}

function draw(drawing, batches, here) {
  const most = topOf(batches);
  const high = (seconds) => (Math.min(seconds, most) / most) * (HIGH - FOOT - HEAD);
  const all = drawing.clientWidth || 900;
  const [wide, start] = [step(batches, all), beginning(batches, all)];
  drawing.setAttribute("viewBox", `0 0 ${all} ${HIGH}`);
  const bars = batches.map((batch, at) => {
    let done = 0;
    const x = start + at * wide;
    const parts = PHASES.filter((name) => batch.phases[name] > 0).map((name) => {
      const before = high(done);
      done += batch.phases[name];
      return s("rect", { class: name, x: x + 1, y: HIGH - FOOT - high(done), width: Math.max(1, wide - 2), height: high(done) - before });
    });
    const beyond = done > most && s("text", { class: "axis", x: x + wide / 2, y: HEAD - 5, "text-anchor": "middle" }, `↑ ${span(done).join(" ")}`);
    return beyond ? [...parts, beyond] : parts;
  });
  drawing.replaceChildren(
    ...[0, most / 2, most].flatMap((seconds) => grid(seconds, HIGH - FOOT - high(seconds), all)),
    s("g", { class: "bars" }, ...bars.flat()),
    ...(batches.length ? [hereMark(batches[here], start + here * wide, wide, high)] : []),
  );
}

const hereMark = (batch, x, wide, high) => {
  const height = high(total(batch.phases)) + 6;
  return s("rect", { class: "here", x: x - 0.5, y: HIGH - FOOT - height + 3, width: wide + 1, height, rx: 2 });
};

const grid = (seconds, y, wide) => [
  s("line", { class: "grid", x1: LEFT, x2: wide, y1: y, y2: y }),
  s("text", { class: "axis", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, seconds ? span(seconds).join(" ") : "0"),
];

/** The next number that is plain, and so is its half. */
export function niceAbove(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 3, 4, 6, 8, 10].find((each) => each * power >= number) * power;
}

function sentence(batch) {
  const phases = PHASES.filter((name) => batch.phases[name] > 0).map((name) => `${name} ${span(batch.phases[name]).join(" ")}`);
  const [records, changes, late] = [batch.records, batch.changes, batch.late].map(total);
  const did = [plural(records, "record"), plural(changes, "change"), late && plural(late, "late row"), batch.letters && plural(batch.letters, "dead letter")];
  return [
    h("b", { text: `Batch ${batch.batch}` }),
    `${batch.at ? ` at ${clock(batch.at)}` : ""}: ${span(batch.seconds).join(" ")} for ${did.filter(Boolean).join(", ")}`,
    h("span", { class: "muted", text: phases.length ? ` (${phases.join(", ")})` : "" }),
  ];
}
