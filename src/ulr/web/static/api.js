// Requests to the server. Every error has one sentence for the person at the page.

export class Problem extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

/** Send a request; an object becomes JSON, a file or text is sent as it is. */
export async function request(method, path, body) {
  const raw = body === undefined || body instanceof Blob || typeof body === "string";
  const headers = body === undefined ? {} : { "Content-Type": raw ? "application/octet-stream" : "application/json" };
  let response;
  try {
    response = await fetch(path, { method, headers, body: raw ? body : JSON.stringify(body) });
  } catch {
    throw new Problem("The server does not answer; is “ulr serve” still running?", 0);
  }
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem("The server sent an answer that is not JSON.", response.status);
  }
  if (!response.ok) throw new Problem(value?.error ?? `The server answered with ${response.status}.`, response.status);
  return value;
}

/** Requests of one session. */
export function sessionRequests(id) {
  const path = (rest) => `/api/sessions/${encodeURIComponent(id)}${rest}`;
  return {
    state: () => request("GET", path("")),
    run: (choices) => request("POST", path("/run"), choices),
    job: () => request("GET", path("/job")),
    cancel: () => request("DELETE", path("/job")),
    view: () => request("GET", path("/view")),
    suggest: () => request("POST", path("/suggestions")),
    suggestions: () => request("GET", path("/suggestions")),
    why: (row) => request("GET", path(`/documents/${row}/why`)),
    document: (row) => request("GET", path(`/documents/${row}`)),
    correct: (rows, label) => request("POST", path("/corrections"), { rows, label }),
    undo: () => request("POST", path("/undo")),
    downloadPath: (what, format) => path(`/download/${what}${format ? `?format=${format}` : ""}`),
  };
}
