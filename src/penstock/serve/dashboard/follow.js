// Following a view: its changes as they come, across servers that stop and start again.
import { events } from "./api.js";
import { Pauses } from "./pauses.js";

/**
 * Calls `moved(count, position)` when all changes of a batch were told, and `lost(true|false)` when the server is not
 * there, and is again. Goes on after the last event that it saw; where what follows it is not kept any more, calls
 * `gone()` and ends. Returns what ends it.
 */
export function follow(view, from, told) {
  const stopping = new AbortController();
  run(view, from, told, stopping.signal);
  return () => stopping.abort();
}

async function run(view, from, { moved, lost, gone }, signal) {
  const pauses = new Pauses();
  let last = null;
  let count = 0;
  while (!signal.aborted) {
    try {
      for await (const event of events(`views/${encodeURIComponent(view)}/changes`, { query: last ? {} : { from }, last, signal })) {
        lost(false);
        pauses.reset();
        last = event.id;
        if (event.kind === "change") count += 1;
        if (event.kind === "batch") {
          moved(count, event.data.position);
          count = 0;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 410) { gone(); return; }
    }
    lost(true);
    await new Promise((done) => setTimeout(done, pauses.next()));
  }
}
