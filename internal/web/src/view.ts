import { signal } from "@preact/signals";
import { asProblem, get, type Problem } from "./api";
import type { Body, Entries, Entry, Limit, Progress } from "./types";

const pageOfEntries = 60;

/** Passes is the progress of a loop. */
export interface Passes { done: number; max: number }

/** passesOf returns the progress at the last iteration among entries; null before the first has ended. */
export function passesOf(entries: Entry[]): Passes | null {
  const last = entries.findLast(e => e.kind === "iteration");
  const of = /(\d+)\/(\d+)/.exec(last?.name ?? "");
  if (!last || !of) return null;
  const done = Number(of[1]) - (last.state === "running" || last.state === "waiting" ? 1 : 0);
  return done > 0 ? { done, max: Number(of[2]) } : null;
}

/** Listed holds the child entries of an entry, or the top-level entries, from a place on. */
export class Listed {
  items: string[] = [];
  before = "";
  earlier = 0;
  loading = false;
  loaded = false;
  problem: Problem | null = null;
  /** late holds entries that changed while a page was loading. */
  late: Entry[] = [];
}

/** RunView holds the loaded entries of a run. */
export class RunView {
  /** rev changes with the content, so that components that read it are redrawn. */
  readonly rev = signal(0);
  pos = 0;
  limit: Limit | null = null;
  /** said and thought are the partial answer. */
  said = "";
  thought = "";
  /** progress is how far the running calls are, by call. */
  readonly progress = new Map<string, string>();
  readonly entries = new Map<string, Entry>();
  /** opened holds the entries that the user opened or closed. */
  readonly opened = new Map<string, boolean>();
  /** target is the entry to scroll to, and revealed the target and its ancestors. */
  target = "";
  revealed = new Set<string>();
  private readonly lists = new Map<string, Listed>();

  constructor(readonly id: string) {}

  /** top lists the entries without a parent. */
  top(): Entry[] { return this.below("").items.map(id => this.entries.get(id)!); }

  below(parent: string): Listed {
    let list = this.lists.get(parent);
    if (!list) this.lists.set(parent, list = new Listed());
    return list;
  }

  passes(): Passes | null { return passesOf(this.top()); }

  /** more loads the page before the loaded ones; the first page is the last one. */
  async more(parent: string, abort?: AbortSignal): Promise<void> {
    const list = this.below(parent);
    if (list.loading) return;
    list.loading = true;
    list.problem = null;
    try {
      const page = await get<Entries>(`/v1/runs/${this.id}/view?limit=${pageOfEntries}&parent=${parent}&before=${list.before}`, abort);
      const known = new Set(list.items);
      for (const e of page.items) this.keep(e);
      list.items = [...page.items.map(e => e.id).filter(id => !known.has(id)), ...list.items];
      list.before = page.before ?? "";
      list.earlier = page.earlier ?? 0;
      list.loaded = true;
      if (parent === "") {
        this.pos ||= page.pos;
        this.limit = page.limit ?? null;
      }
    } finally {
      list.loading = false;
      for (const e of list.late.splice(0)) this.take(e);
      this.changed();
    }
  }

  /** open loads the child entries of an entry that the user opens. */
  open(parent: string): void {
    const list = this.below(parent);
    if (!list.loaded && !list.loading) void this.more(parent).catch(err => {
      const problem = asProblem(err);
      if (problem.status === 404) list.loaded = true; // a child run has no entries before it starts
      else list.problem = problem;
      this.changed();
    });
  }

  choose(id: string, open: boolean): void {
    this.opened.set(id, open);
    this.changed();
  }

  /** chooseAll opens or closes all loaded entries. */
  chooseAll(open: boolean): void {
    for (const id of this.entries.keys()) this.opened.set(id, open);
    this.changed();
  }

  /** reveal loads the ancestors of an entry and opens them. It returns the entry, which the number of any of its events names. */
  async reveal(event: string, abort: AbortSignal): Promise<string> {
    const { id } = this.entries.get(event) ?? (await this.body(event, abort)).entry;
    const above: Entry[] = [];
    for (let at = id; at; at = above[0]!.parent ?? "") above.unshift(this.entries.get(at) ?? (await this.body(at, abort)).entry);
    for (const e of above) {
      const list = this.below(e.parent ?? "");
      if (!list.loaded) await this.more(e.parent ?? "", abort);
      while (!list.items.includes(e.id) && list.before) await this.more(e.parent ?? "", abort);
      this.opened.set(e.id, true);
    }
    this.revealed = new Set(above.map(e => e.id));
    this.target = id;
    this.changed();
    return id;
  }

  /** next returns the next entry of a selection of the server, the first after the last; "" if there is none. */
  async next(only: string): Promise<string> {
    const ids = (await get<Entries>(`/v1/runs/${this.id}/view?limit=500&only=${only}`)).items.map(e => e.id);
    return ids.find(id => Number(id) > Number(this.target || -1)) ?? ids[0] ?? "";
  }

  body(id: string, abort: AbortSignal): Promise<Body> { return get<Body>(`/v1/runs/${this.id}/view/${id}`, abort); }

  setProgress({ callId = "", done = 0, total = 0, message = "" }: Progress): void {
    this.progress.set(callId, `${total > 0 ? `${Math.round(100 * done / total)} %` : done} ${message}`.trim());
  }

  /** live returns what is known of a running entry before its end. */
  live(e: Entry): string {
    if (e.state !== "running") return "";
    return e.kind === "cycle" ? this.said + this.thought : e.kind === "call" ? this.progress.get(e.ref ?? "") ?? "" : "";
  }

  /** take applies a changed entry; a new one is appended to the loaded ones. */
  take(e: Entry): void {
    if (e.kind === "cycle" && e.state !== "running") this.said = this.thought = "";
    if (e.kind === "call" && e.state !== "running") this.progress.delete(e.ref ?? "");
    const list = this.lists.get(e.parent ?? "");
    if (list?.loading) list.late.push(e);
    else if (this.entries.has(e.id)) this.keep(e);
    else if (list?.loaded && !(Number(e.id) < Number(list.items[0]))) { // an older one is loaded with its page
      list.items.push(e.id);
      this.keep(e);
    }
  }

  private keep(e: Entry): void {
    const known = this.entries.get(e.id);
    if (!known || known.seq <= e.seq) this.entries.set(e.id, e);
  }

  changed(): void { this.rev.value++; }
}
