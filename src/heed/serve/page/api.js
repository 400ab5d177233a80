// How does the page ask its server? Only this server, and every failure becomes a sentence for a person.

let key = "";

export function useKey(text) {
  key = text.trim();
}

export class ServerError extends Error {
  constructor(message, status = 0, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function request(path, body, signal) {
  const isForm = body instanceof FormData;
  const headers = {
    ...(body && !isForm ? { "Content-Type": "application/json" } : {}),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
  };
  let response;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && !isForm ? JSON.stringify(body) : body,
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const retryAfter = response.headers.get("Retry-After");
  const found = await response.json().catch(() => null);
  const said = typeof found?.error === "string" ? found.error : found?.error?.message;
  throw new ServerError(said || `The server answered ${response.status}.`, response.status, retryAfter);
}

/** JSON from a path; with a body it is posted. */
export async function ask(path, body = null, signal = undefined) {
  return (await request(path, body, signal)).json();
}

/** JSON from a path that a file is posted to, with the fields of a form. */
export async function sendFile(path, file, fields, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...fields, ...(key ? { api_key: key } : {}) })) form.append(name, value);
  form.append("file", file);
  return (await request(path, form, signal)).json();
}

export async function askText(path) {
  return (await request(path)).text();
}

/** The whole answer of a call that streams; `onPartial` gets what is known so far. */
export async function follow(path, body, onPartial, signal) {
  const response = await request(path, { ...body, stream: true }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) break;
      const events = (rest + value).split(/\r?\n\r?\n/);
      rest = events.pop();
      for (const text of events) {
        const event = parsed(text);
        if (event.name === "partial") onPartial(event.data);
        else if (event.name === "done") return event.data;
        else if (event.name === "error") throw new ServerError(event.data.error.message);
      }
    }
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    throw new ServerError("The connection broke off before the answer was whole.");
  }
  throw new ServerError("The server ended its answer early.");
}

function parsed(text) {
  const lines = text.split(/\r?\n/);
  const of = (field) =>
    lines
      .filter((line) => line.startsWith(`${field}:`))
      .map((line) => line.slice(field.length + 1).replace(/^ /, ""))
      .join("\n");
  return { name: of("event"), data: JSON.parse(of("data") || "null") };
}
