// Values for the eye: numbers, amounts, spans of time, moments.
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const UNITS = ["B", "kB", "MB", "GB", "TB"];
const NUMERIC = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)/;
const MOMENT = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:\d{2})?$/;

export const isNumeric = (column) => NUMERIC.test(column.type);
export const isTime = (column) => /^(TIMESTAMP|DATE)/.test(column.type);
export const isWindow = (column) => /^STRUCT<`?start`?: TIMESTAMP.*, `?end`?: TIMESTAMP/i.test(column.type);

/** The type of a column in few words. */
export const kindOf = (column) => (isWindow(column) ? "window" : shorter(column.type.toLowerCase(), 24));

export const count = (number) => whole.format(number);
export const rate = (number) => (number >= 100 ? whole : fine).format(number);
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function bytes(number) {
  let unit = 0;
  while (number >= 1000 && unit < UNITS.length - 1) { number /= 1000; unit += 1; }
  return [fine.format(number), UNITS[unit]];
}

/** [amount, unit] of seconds. */
export function span(seconds) {
  if (seconds < 1) return [fine.format(seconds * 1000), "ms"];
  if (seconds < 120) return [fine.format(seconds), "s"];
  if (seconds < 7200) return [fine.format(seconds / 60), "min"];
  if (seconds < 172800) return [fine.format(seconds / 3600), "h"];
  return [whole.format(seconds / 86400), "d"];
}

/** A moment as people write it; times are UTC unless they say otherwise. */
export function moment(text) {
  const found = MOMENT.exec(text);
  if (!found) return text;
  const zone = found[3] && found[3] !== "Z" && found[3] !== "+00:00" ? ` ${found[3]}` : "";
  return `${found[1]} ${found[2].replace(/\.(\d{3})\d*$/, ".$1")}${zone}`;
}

export const clock = (text) => moment(text).slice(11, 19);

export function shown(value) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "string") return moment(value);
  if (typeof value !== "object") return String(value);
  if ("start" in value && "end" in value) return between(value);
  return JSON.stringify(value);
}

function between({ start, end }) {
  const [from, until] = [moment(String(start)), moment(String(end))];
  return `${from} – ${from.slice(0, 10) === until.slice(0, 10) ? until.slice(11) : until}`;
}

export const shorter = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
