import { signal } from "@preact/signals";
import type { Principal, Told } from "./types";

/** Problem describes a failed request (RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number, readonly title: string, readonly detail: string, readonly next = "",
    readonly errors: { [key: string]: unknown }[] = [], readonly fields: { field: string; message: string }[] = [],
  ) {
    super(`${title}: ${detail}`);
  }
}

const kept = "pawl.token";

/**
 * takeToken reads the token from the fragment of the address, before the place, which no browser sends
 * to a server, and removes it there. The tab keeps it.
 */
export function takeToken(): string {
  const found = /^#(pawl_[\w-]+)(\/.*)?$/.exec(location.hash);
  if (!found) return "";
  sessionStorage.setItem(kept, found[1]!);
  history.replaceState(null, "", `#${found[2] ?? "/"}`);
  return found[1]!;
}

takeToken();

/** token is sent with every request; the tab keeps it until it is closed. */
export const token = signal(sessionStorage.getItem(kept) ?? "");

/** locked is why the server requires another token, null if it does not. */
export const locked = signal<Problem | null>(null);

/** away reports whether the connection to the server is lost. Nothing is sent then, since what is shown may be out of date. */
export const away = signal(false);

/** principal is the current user, null until the server has answered. */
export const principal = signal<Principal | null>(null);

/** decides reports whether the user may change runs. */
export function decides(): boolean {
  return principal.value?.role === "editor" || principal.value?.role === "admin";
}

export function useToken(given: string): void {
  if (given) sessionStorage.setItem(kept, given);
  else sessionStorage.removeItem(kept);
  token.value = given;
  locked.value = null;
}

/** asProblem converts any failure to a problem. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(0, "The server cannot be reached", String(err instanceof Error ? err.message : err), "look whether 'pawl serve' is still running; the page comes back by itself");
}

async function problemOf(r: Response): Promise<Problem> {
  let p: { title?: string; detail?: string; next?: string; errors?: { [key: string]: unknown }[]; fields?: { field: string; message: string }[] } = {};
  try {
    p = await r.json();
  } catch (err) {
    if (err instanceof DOMException && err.name === "AbortError") throw err;
    // A proxy in between may answer in words of its own.
  }
  const problem = new Problem(r.status, p.title ?? `Status ${r.status}`, p.detail ?? r.statusText, p.next, p.errors, p.fields);
  if (r.status === 401) locked.value = problem;
  return problem;
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value) headers.set("Authorization", `Bearer ${token.value}`);
  const r = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  if (r.ok) return r;
  throw await problemOf(r);
}

export async function get<T>(path: string, abort?: AbortSignal): Promise<T> {
  return (await ask(path, { signal: abort ?? null })).json();
}

/** fetchWhole returns an answer as it is. */
export async function fetchWhole(path: string): Promise<Blob> { return (await ask(path, {})).blob(); }

export async function post<T>(path: string, body: object): Promise<T> {
  if (away.value) throw new Problem(0, "Nothing was sent", "the connection to the server is lost, so what is shown may be out of date", "the page reconnects by itself; then do it again");
  return (await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
}

/** Connection is the state of a stream. */
export type Connection = "connecting" | "live" | "lost" | "over";

// A stream is silent for less than ten seconds; a longer silence means that the
// connection is lost.
const silence = 25_000;
const soonest = 500;
const latest = 10_000;

/**
 * listen yields the events of a stream after a place until the run has ended. If the connection is
 * lost, it reconnects after the last event.
 */
export async function listen<T = Told["data"]>(
  path: string, after: number, abort: AbortSignal, hear: (events: Told<T>[]) => void, stands: (c: Connection, why?: Problem) => void,
): Promise<void> {
  for (let wait = soonest, first = true; !abort.aborted; first = false) {
    stands(first ? "connecting" : "lost");
    try {
      const over = await listenOnce<T>(path, after, abort, events => {
        wait = soonest;
        for (const e of events) after = Math.max(after, e.id);
        hear(events);
      }, () => stands("live"));
      if (over) return stands("over");
    } catch (err) {
      if (abort.aborted) return;
      const problem = asProblem(err);
      stands("lost", problem);
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) return;
    }
    await sleep(wait, abort);
    wait = Math.min(2 * wait, latest);
  }
}

/** listenOnce reads one connection, and reports whether the stream is complete. */
async function listenOnce<T>(
  path: string, after: number, abort: AbortSignal, hear: (events: Told<T>[]) => void, opened: () => void,
): Promise<boolean> {
  const cut = new AbortController();
  const stop = () => cut.abort();
  abort.addEventListener("abort", stop);
  let watch = setTimeout(stop, silence);
  try {
    const r = await ask(path, { headers: { Accept: "text/event-stream", "Last-Event-ID": String(after) }, signal: cut.signal });
    if (r.status === 204 || !r.body) return true;
    opened();
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    let over = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return over;
      clearTimeout(watch);
      watch = setTimeout(stop, silence);
      const blocks = (left + value).split("\n\n");
      left = blocks.pop() ?? "";
      const events = blocks.flatMap(eventOf<T>);
      over ||= events.some(e => (e.data as { last?: boolean }).last);
      if (events.length > 0) hear(events);
    }
  } finally {
    clearTimeout(watch);
    abort.removeEventListener("abort", stop);
  }
}

/** eventOf returns the event in a block of a stream; a comment has none. */
function eventOf<T>(block: string): Told<T>[] {
  const field = (name: string) => block.split("\n").filter(line => line.startsWith(`${name}: `)).map(line => line.slice(name.length + 2)).join("\n");
  const data = field("data");
  return data ? [{ id: Number(field("id")), type: field("event"), data: JSON.parse(data) }] : [];
}

export function sleep(ms: number, abort: AbortSignal): Promise<void> {
  return new Promise(done => {
    const timer = setTimeout(done, ms);
    abort.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
