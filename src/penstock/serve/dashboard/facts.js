// What the last batches say: rates, watermarks, sizes.
export const RECENT_SECONDS = 10;
const AVERAGED = 20;

const sum = (batches, name) => {
  const found = {};
  for (const batch of batches) {
    for (const [key, value] of Object.entries(batch[name] ?? {})) found[key] = (found[key] ?? 0) + value;
  }
  return found;
};

export const total = (counts) => Object.values(counts).reduce((all, each) => all + each, 0);

export function factsOf({ batches, lag }, now = Date.now()) {
  const recent = batches.filter((batch) => batch.at && now - Date.parse(batch.at) <= RECENT_SECONDS * 1000);
  const newest = batches.slice(-AVERAGED);
  const watermarks = {};
  for (const batch of batches) Object.assign(watermarks, batch.watermarks);
  const delays = Object.values(watermarks).map((time) => Math.max(0, (now - Date.parse(time)) / 1000));
  return {
    lag,
    watermarks,
    delay: delays.length ? Math.max(...delays) : null,
    records: sum(recent, "records"),
    changes: sum(recent, "changes"),
    late: sum(batches, "late"),
    letters: batches.reduce((all, batch) => all + batch.letters, 0),
    seconds: newest.length ? newest.reduce((all, batch) => all + batch.seconds, 0) / newest.length : null,
    stateBytes: batches.findLast((batch) => batch.state_bytes !== null)?.state_bytes ?? null,
    batch: batches.at(-1)?.batch ?? null,
  };
}
