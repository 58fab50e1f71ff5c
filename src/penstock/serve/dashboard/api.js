// Asking the server: JSON, and events as they come. The token, where one is needed, is kept for this tab.
import { byId } from "./dom.js";

const KEY = "penstock-token";
let asking = null;

export class Trouble extends Error {
  constructor(status, told) {
    super(told.primary);
    this.status = status;
    this.detail = told.detail;
    this.hint = told.hint;
  }
}

const headers = () => {
  const token = sessionStorage.getItem(KEY);
  return token ? { authorization: `Bearer ${token}` } : {};
};

/** `?a=1&b=2&b=3` of what is not empty. */
function queryOf(query) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of [value].flat()) if (each !== null && each !== undefined && each !== "") found.append(name, each);
  }
  const text = found.toString();
  return text && `?${text}`;
}

async function request(path, { query, body, signal, last } = {}) {
  for (;;) {
    const given = headers();
    const answer = await fetch(path + queryOf(query), {
      method: body === undefined ? "GET" : "POST",
      headers: { ...given, ...(body === undefined ? {} : { "content-type": "application/json" }), ...(last ? { "last-event-id": last } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
    }).catch(() => { throw new Trouble(0, { primary: "the server does not answer" }); });
    if (answer.status !== 401) return answer;
    if (headers().authorization !== given.authorization) continue; // another was given meanwhile
    await wanted(given.authorization ? "This token is not known here." : "");
  }
}

export async function ask(path, options) {
  const answer = await request(path, options);
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  throw new Trouble(answer.status, told.error ?? { primary: `the server answered ${answer.status}` });
}

/** Server-sent events, read from the answer's body: EventSource could not send the token. */
export async function* events(path, options) {
  const answer = await request(path, options);
  if (!answer.ok) throw new Trouble(answer.status, (await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const event = eventOf(text.slice(0, end));
      text = text.slice(end + 2);
      if (event) yield event;
    }
  }
}

function eventOf(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
  }
  return fields.event ? { id: fields.id, kind: fields.event, data: JSON.parse(fields.data) } : null;
}

/** Asks for a token, once for all that wait for it. */
function wanted(complaint) {
  asking ??= new Promise((given) => {
    const dialog = byId("token");
    const input = byId("token-text");
    byId("token-trouble").textContent = complaint;
    byId("token-trouble").hidden = !complaint;
    input.value = "";
    dialog.oncancel = (event) => event.preventDefault();
    dialog.onclose = () => {
      if (dialog.open) return; // told late of an earlier closing
      sessionStorage.setItem(KEY, input.value.trim());
      asking = null;
      offerToForget();
      given();
    };
    dialog.showModal();
  });
  return asking;
}

export function offerToForget() {
  const button = byId("forget");
  button.hidden = !sessionStorage.getItem(KEY);
  button.onclick = () => {
    sessionStorage.removeItem(KEY);
    location.reload();
  };
}
