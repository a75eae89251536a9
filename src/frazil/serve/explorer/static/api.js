// Requests to the server: the bearer token, the session's token, and errors with a sentence.

const BASE = "/explorer/api";
const KEPT = "frazil-token";

let session = null;
let asking = null;
/** @type {(why: {wrong: boolean}) => Promise<string>} */
let ask = async () => null;

export class ApiError extends Error {
  constructor(status, message, type) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

const bearer = () => {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
};
const keep = (token) => {
  try {
    token ? sessionStorage.setItem(KEPT, token) : sessionStorage.removeItem(KEPT);
  } catch {
    /* not kept */
  }
};

/** Who asks for a token when the server wants one: `({wrong}) => Promise<string>`. */
export const onTokenNeeded = (how) => {
  ask = how;
};

/**
 * @param {string} path
 * @param {{method?: string, params?: object, body?: any, signal?: AbortSignal}} [options]
 */
async function send(path, { method = "GET", params, body, signal } = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params ?? {}))
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  const headers = { Accept: "application/json" };
  const token = bearer();
  if (token) headers.Authorization = `Bearer ${token}`;
  if (method !== "GET") {
    headers["Content-Type"] = "application/json";
    headers["X-Frazil-Session"] = session?.token ?? "";
  }
  let reply;
  try {
    reply = await fetch(BASE + path + (query.size ? `?${query}` : ""), {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer. Is it still running?");
  }
  const text = await reply.text();
  let parsed = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    /* said below */
  }
  if (reply.ok && parsed !== null) return parsed;
  throw new ApiError(
    reply.status,
    parsed?.error?.message ?? `The server answered ${reply.status} without a reason.`,
    parsed?.error?.type,
  );
}

async function signIn() {
  asking ??= (async () => {
    for (let wrong = Boolean(bearer()); ; wrong = true) {
      keep(await ask({ wrong }));
      session = await send("/session");
      if (session.token) return;
    }
  })().finally(() => {
    asking = null;
  });
  return asking;
}

export async function call(path, given = {}) {
  for (;;) {
    try {
      return await send(path, given);
    } catch (error) {
      if (error.status !== 401) throw error;
      await signIn();
    }
  }
}

export const get = (path, params, signal) => call(path, { params, signal });
export const post = (path, body, signal) => call(path, { method: "POST", body, signal });

/** The session; asks for a token first where one is needed. */
export async function open() {
  session = await send("/session");
  if (session.needs_token && !session.token) await signIn();
  return session;
}

export const currentSession = () => session;

/** What a view of the catalog is. */
export const viewOf = (levels, name) =>
  get(`/views/${encodeURIComponent(levels.join("\x1f"))}/${encodeURIComponent(name)}`);

/** The API of one table. */
export function tableApi(levels, name) {
  const base = `/tables/${encodeURIComponent(levels.join("\x1f"))}/${encodeURIComponent(name)}`;
  return {
    get: (what, params, signal) => get(`${base}/${what}`, params, signal),
    post: (what, body) => post(`${base}/${what}`, body),
  };
}

export const aborted = (error) => error?.name === "AbortError";
