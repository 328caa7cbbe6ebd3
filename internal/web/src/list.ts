import { signal } from "@preact/signals";
import { asProblem, get, post, Problem } from "./api";
import { follow } from "./feed";
import type { Entries, Page, Run } from "./types";
import { type Passes, passesOf } from "./view";

const pageOfRuns = 50;
const reread = 60_000;
const pauseOfLoop = 2000;

/** filters are the parameters of the list that the address can have. */
export const filters = ["state", "outcome", "kind", "text", "since", "until"] as const;

/** queryOf returns the filters in an address of the page. */
export function queryOf(place: string): URLSearchParams {
  const given = new URLSearchParams(place.split("?")[1] ?? "");
  return new URLSearchParams(filters.flatMap(name => given.get(name) ? [[name, given.get(name)!]] : []));
}

/** asked returns a query as the server expects it, with times in place of days. */
function asked(query: URLSearchParams): URLSearchParams {
  const q = new URLSearchParams(query);
  for (const [name, days] of [["since", 0], ["until", 1]] as const) {
    const day = q.get(name);
    const [y, m, d] = (day ?? "").split("-").map(Number);
    if (day && y && m && d) q.set(name, new Date(y, m - 1, d + days).toISOString());
    else q.delete(name);
  }
  return q;
}

/** selects reports whether a query selects a run, by the rules of the server. */
export function selects(query: URLSearchParams, run: Run): boolean {
  const q = asked(query);
  const is = (name: string, value: string | undefined) => !q.get(name) || q.get(name) === value;
  const text = (q.get("text") ?? "").toLowerCase();
  const created = Date.parse(run.created);
  return !run.parent && is("state", run.state) && is("kind", run.kind) && is("outcome", run.outcome?.status)
    && (!text || (run.name ?? "").toLowerCase().includes(text) || (run.input ?? "").toLowerCase().includes(text))
    && !(created < Date.parse(q.get("since") ?? "")) && !(created >= Date.parse(q.get("until") ?? ""));
}

/** Verb is a command to several runs. */
export type Verb = "cancel" | "resume" | "remove";

/** takes reports whether a run accepts a command in its state. */
export function takes(verb: Verb, run: Run): boolean {
  if (verb === "resume") return !!(run.undriven || run.answered || run.expired || run.state === "paused" || run.detail === "interrupted");
  return (run.state === "ended") === (verb === "remove");
}

/** RunList holds the root runs that a query selects, newest first, and keeps them up to date. */
export class RunList {
  readonly runs = signal<Run[] | null>(null);
  readonly next = signal("");
  readonly problem = signal<Problem | null>(null);
  /** loops holds the progress of the running loops. */
  readonly loops = signal(new Map<string, Passes | null>());
  /** chosen holds the runs that the user has marked, and failed why an action on a run failed. */
  readonly chosen = signal(new Set<string>());
  readonly failed = signal<[string, Problem][]>([]);
  private readonly loopTimers = new Map<string, ReturnType<typeof setTimeout>>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private gone = new AbortController();
  private reading = false;
  private changed: Run[] = [];

  constructor(private readonly query: URLSearchParams) {}

  start(): () => void {
    this.gone = new AbortController();
    void this.read();
    const stop = follow({ begins: () => void this.read(), run: run => this.take(run), removed: id => this.drop(id) });
    return () => {
      stop();
      this.gone.abort();
      clearTimeout(this.timer);
      this.loopTimers.forEach(clearTimeout);
    };
  }

  /** read loads the first page: at the start, when a stream starts, and once a minute, since a process can die without an event. */
  private async read(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    clearTimeout(this.timer);
    try {
      const page = await this.page("");
      const older = (this.runs.value ?? []).slice(page.items.length).filter(r => !page.items.some(now => now.id === r.id));
      this.runs.value = [...page.items, ...older];
      if (older.length === 0) this.next.value = page.next ?? "";
      page.items.forEach(run => this.countLoop(run));
      this.problem.value = null;
    } catch (err) {
      if (!this.gone.signal.aborted) this.problem.value = asProblem(err);
    } finally {
      this.reading = false;
      this.changed.splice(0).forEach(run => this.take(run));
      if (!this.gone.signal.aborted) this.timer = setTimeout(() => void this.read(), reread);
    }
  }

  private page(cursor: string): Promise<Page<Run>> {
    const q = asked(this.query);
    q.set("limit", String(pageOfRuns));
    if (cursor) q.set("cursor", cursor);
    return get<Page<Run>>(`/v1/runs?${q}`, this.gone.signal);
  }

  async more(): Promise<void> {
    try {
      const page = await this.page(this.next.value);
      const known = new Set(this.runs.value?.map(r => r.id));
      this.runs.value = [...this.runs.value ?? [], ...page.items.filter(r => !known.has(r.id))];
      this.next.value = page.next ?? "";
    } catch (err) {
      this.problem.value = asProblem(err);
    }
  }

  choose(ids: string[], on: boolean): void {
    const chosen = new Set(this.chosen.value);
    for (const id of ids) on ? chosen.add(id) : chosen.delete(id);
    this.chosen.value = chosen;
  }

  /** doAll sends a command to runs, one after the other. A run that took it is no longer marked. */
  async doAll(runs: Run[], verb: Verb, body: object): Promise<void> {
    this.failed.value = [];
    for (const { id } of runs) {
      try {
        await post(`/v1/runs/${id}/${verb}`, body);
        this.choose([id], false);
        if (verb === "remove") this.drop(id);
      } catch (err) {
        this.failed.value = [...this.failed.value, [id, asProblem(err)]];
      }
    }
  }

  /** drop removes a run that was removed from the journal. */
  private drop(id: string): void {
    this.choose([id], false);
    if (this.runs.value?.some(r => r.id === id)) this.runs.value = this.runs.value.filter(r => r.id !== id);
  }

  /** take applies a changed run: it adds a new one, and removes one that the query no longer selects. */
  private take(run: Run): void {
    const runs = this.runs.value;
    if (this.reading || !runs) return void this.changed.push(run);
    const at = runs.findIndex(r => r.id === run.id);
    if (!selects(this.query, run)) {
      if (at >= 0) this.runs.value = runs.filter(r => r.id !== run.id);
      return;
    }
    if (at >= 0) {
      if (runs[at]!.seq <= run.seq) this.runs.value = runs.with(at, run);
    } else {
      const before = runs.findIndex(r => r.created < run.created);
      if (before >= 0) this.runs.value = runs.toSpliced(before, 0, run);
      else if (!this.next.value) this.runs.value = [...runs, run];
    }
    this.countLoop(run);
  }

  /** countLoop loads the progress of a loop, at most every two seconds. */
  private countLoop(run: Run): void {
    if (run.kind === "Agent" || run.kind === "Workflow" || run.state === "ended" || this.loopTimers.has(run.id)) return;
    const count = async () => {
      this.loopTimers.delete(run.id);
      try {
        const { items } = await get<Entries>(`/v1/runs/${run.id}/view?limit=5`, this.gone.signal);
        this.loops.value = new Map(this.loops.value).set(run.id, passesOf(items));
      } catch { /* the next change loads it again */ }
    };
    this.loopTimers.set(run.id, setTimeout(() => void count(), this.loops.value.has(run.id) ? pauseOfLoop : 0));
  }
}
