// Requests to the server of the page. Every failure becomes an error with a message for the user.

let key = "";

export function useKey(text) {
  key = text.trim();
}

const FINAL = ["bad_request", "not_found", "unauthorized", "disabled", "too_large"]; // error codes of heed's own API

export class ServerError extends Error {
  /** `canRetry`: whether the same request may succeed later. */
  constructor(message, canRetry = true, retryAfter = null) {
    super(message);
    this.canRetry = canRetry;
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
    throw new ServerError("The server does not respond. Check that it is running.");
  }
  if (response.ok) return response;
  const retryAfter = response.headers.get("Retry-After");
  const answer = await response.json().catch(() => null);
  const message = typeof answer?.error === "string" ? answer.error : answer?.error?.message;
  const canRetry = response.status >= 500 || response.status === 408 || response.status === 429;
  throw new ServerError(message || `The server responded with status ${response.status}.`, canRetry, retryAfter);
}

/** JSON from a path; a body is posted. */
export async function ask(path, body = null, signal = undefined) {
  return (await request(path, body, signal)).json();
}

/** JSON from a path to which a form with a file is posted. */
export async function sendFile(path, file, fields, signal) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...fields, ...(key ? { api_key: key } : {}) })) form.append(name, value);
  form.append("file", file);
  return (await request(path, form, signal)).json();
}

export async function askText(path) {
  return (await request(path)).text();
}

/** The final answer of a streaming request. `onPartial(data)` is called for each event before it. */
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
        if (event.name === "partial" || event.name === "piece") onPartial(event.data);
        else if (event.name === "done") return event.data;
        else if (event.name === "error") {
          const { message, code } = event.data.error;
          throw new ServerError(message, !FINAL.includes(code));
        }
      }
    }
  } catch (error) {
    if (error instanceof ServerError || error.name === "AbortError") throw error;
    throw new ServerError("The connection was lost before the response was complete.");
  }
  throw new ServerError("The server's response is incomplete.");
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
