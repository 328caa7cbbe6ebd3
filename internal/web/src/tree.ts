import { batch, signal } from "@preact/signals";
import { type Connection, Problem, asProblem, get, listen, sleep } from "./api";
import { RunView } from "./fold";
import type { Event, Page, Run, Shown } from "./types";

const pageOfEvents = 500;
const pageOfRuns = 100;

/** after these the run has to be asked anew how it stands, and what it waits for. */
const moves = /^(run\.|tool\.(pending_approval|approval_resolved)|review\.|child\.(parked|waiting|finished)|pause\.|cancel\.|budget\.raised|checkpoint|model\.response|input\.received)/;

/** Head is a run as its row has it, and, once that was asked for, with what it costs and asks. */
export type Head = Run & Partial<Shown>;

/** Known is what is known of a run: wanted by somebody who shows it, or heard from its first event on. */
interface Known { view: RunView; wanted: boolean; loading: boolean; waiting: Event[] }

/** Tree is a run and all below it, as they are and as they go on. */
export class Tree {
  readonly head = signal<Head | null>(null);
  /** problem is why the run cannot be shown. */
  readonly problem = signal<Problem | null>(null);
  readonly rows = signal<Run[]>([]);
  readonly moreRows = signal("");
  readonly connection = signal<{ stands: Connection; why?: Problem }>({ stands: "connecting" });
  /** loaded is how many events of the run are here while not all are, else -1. */
  readonly loaded = signal(0);
  private readonly views = new Map<string, Known>();
  /** half are the runs that nobody shows of which the beginning of an answer went by. */
  private readonly half = new Set<string>();
  private readonly gone = new AbortController();
  private queue: Event[] = [];
  private flushing = false;
  private asking = false;
  private askAgain = false;

  constructor(readonly id: string) {}

  async start(): Promise<void> {
    for (let wait = 500; ; wait = Math.min(2 * wait, 10_000)) {
      try {
        await this.beginTree(); // alone: of a large tree there is something to see before its events are read
        await this.fill(this.id, true);
        break;
      } catch (err) {
        if (this.gone.signal.aborted) return;
        const problem = asProblem(err);
        if (problem.status >= 400 && problem.status < 500) {
          this.problem.value = problem;
          return;
        }
        this.connection.value = { stands: "lost", why: problem };
        await sleep(wait, this.gone.signal);
      }
    }
    this.loaded.value = -1;
    const root = this.view(this.id);
    if (root.outcome) {
      this.connection.value = { stands: "over" };
      return;
    }
    await listen(`/v1/runs/${this.id}/events?tree=true&deltas=true`, root.pos, this.gone.signal,
      events => this.hear(events),
      (stands, why) => { this.connection.value = why ? { stands, why } : { stands }; });
  }

  close(): void { this.gone.abort(); }

  /** view is what is known of a run's events; what is not there yet is loaded. */
  view(run: string): RunView {
    const known = this.views.get(run);
    if (known) {
      known.wanted = true;
      return known.view;
    }
    void this.fill(run, false).catch(err => {
      const { view } = this.views.get(run)!;
      view.entries.push({ is: "said", key: "unread", rev: 0, at: new Date().toISOString(), note: { text: asProblem(err).message, tone: "bad" } });
      view.changed();
    });
    return this.views.get(run)!.view;
  }

  /** fill loads a run's events behind those that are here. */
  private async fill(run: string, counted: boolean): Promise<void> {
    let of = this.views.get(run);
    if (!of) this.views.set(run, of = { view: new RunView(run), wanted: true, loading: false, waiting: [] });
    if (of.loading) return;
    of.loading = true;
    const { view } = of;
    const late = this.half.has(run);
    try {
      for (let cursor = view.pos ? String(view.pos) : ""; ;) {
        const page = await get<Page<Event>>(`/v1/runs/${run}/events?limit=${pageOfEvents}${cursor && `&cursor=${cursor}`}`, this.gone.signal);
        for (const e of page.items) view.apply(e);
        view.changed();
        if (counted) this.loaded.value = view.seq;
        if (!page.next) break;
        cursor = page.next;
      }
    } finally {
      of.loading = false;
    }
    if (late) view.deafen();
    const waiting = of.waiting;
    of.waiting = [];
    for (const e of waiting) this.take(e);
    view.changed();
  }

  async moreOfTree(): Promise<void> {
    const cursor = this.moreRows.value;
    const page = await get<Page<Run>>(`/v1/runs/${this.id}/tree?limit=${pageOfRuns}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, this.gone.signal);
    const known = new Set(this.rows.value.map(r => r.id));
    this.rows.value = [...this.rows.value, ...page.items.filter(r => !known.has(r.id))];
    this.moreRows.value = page.next ?? "";
  }

  /** beginTree shows the run as its row has it; what takes longer comes after that. */
  private async beginTree(): Promise<void> {
    if (this.rows.value.length === 0) await this.moreOfTree();
    const row = this.rows.value[0];
    if (!row) return;
    this.head.value = row;
    if (row.state !== "ended") this.refresh();
  }

  /**
   * refresh asks how the run stands, what it costs and what it waits for. For a large
   * tree that is much work, so it waits four times as long as that took.
   */
  refresh(): void {
    if (this.asking) {
      this.askAgain = true;
      return;
    }
    this.asking = true;
    const began = performance.now();
    get<Shown>(`/v1/runs/${this.id}`, this.gone.signal)
      .then(shown => { if (shown.seq >= (this.head.value?.seq ?? 0)) this.head.value = shown; })
      .catch(() => { /* the stream says that the server is away, and its first event is asked about */ })
      .then(() => sleep(Math.max(100, 4 * (performance.now() - began)), this.gone.signal))
      .then(() => {
        this.asking = false;
        if (this.askAgain && !this.gone.signal.aborted) {
          this.askAgain = false;
          this.refresh();
        }
      });
  }

  /** hear takes events in with the next frame, all that have come at once. */
  private hear(events: Event[]): void {
    for (const e of events) this.queue.push(e);
    if (this.flushing) return;
    this.flushing = true;
    const flush = () => {
      this.flushing = false;
      const queue = this.queue;
      this.queue = [];
      batch(() => this.takeAll(queue));
    };
    if (document.hidden) setTimeout(flush, 250);
    else requestAnimationFrame(flush);
  }

  private takeAll(events: Event[]): void {
    const touched = new Set<RunView>();
    let moved = false;
    const rows = new Map(this.rows.value.map(r => [r.id, r]));
    let changedRows = false;
    for (const e of events) {
      if (e.run === this.id && e.seq && this.head.value) this.head.value = stood(this.head.value, e);
      if (e.seq === 1 && !this.views.has(e.run)) this.views.set(e.run, { view: new RunView(e.run), wanted: false, loading: false, waiting: [] });
      const of = this.views.get(e.run);
      if (e.seq) this.half.delete(e.run);
      else if (!of) this.half.add(e.run);
      if (of && this.take(e)) touched.add(of.view);
      if (of && !of.wanted && e.type === "run.completed") this.views.delete(e.run); // who wants it later loads it
      moved ||= moves.test(e.type);
      const row = rows.get(e.run);
      if (row && e.seq && e.seq > row.seq) {
        const now = stood(row, e);
        changedRows ||= now !== row;
        rows.set(e.run, now);
      } else if (!row && e.type === "run.started" && !this.moreRows.value) {
        rows.set(e.run, begun(e));
        changedRows = true;
      }
    }
    if (changedRows) this.rows.value = inOrder([...rows.values()]);
    for (const view of touched) view.changed();
    if (moved) this.refresh();
  }

  /** take applies an event, and reports whether it did. */
  private take(e: Event): boolean {
    const of = this.views.get(e.run);
    if (!of) return false;
    const { view } = of;
    if (of.loading) {
      of.waiting.push(e);
      return false;
    }
    if (e.seq && e.seq <= view.seq) return false;
    if (e.seq && e.seq > view.seq + 1) {
      of.waiting.push(e);
      void this.fill(e.run, false).catch(() => { /* it is tried again with the next event */ });
      return false;
    }
    view.apply(e);
    return true;
  }
}

function begun(e: Event): Run {
  const d = e.data;
  return { id: e.run, parent: d.parent ?? e.parent, root: d.root, depth: d.depth, kind: d.kind, name: d.name, step: d.step ?? e.step, created: e.time, updated: e.time, state: "running", cycles: 0, seq: e.seq ?? 0 };
}

/** stood is a row after an event. */
function stood(row: Run, e: Event): Run {
  switch (e.type) {
    case "run.parked": return { ...row, state: "parked", detail: e.data.reason, seq: e.seq!, updated: e.time };
    case "run.resumed": return { ...row, state: "running", detail: "", answered: false, undriven: false, seq: e.seq!, updated: e.time };
    case "run.completed": return { ...row, state: "ended", outcome: e.data.outcome, seq: e.seq!, updated: e.time };
    case "cycle.start": return { ...row, cycles: e.data.cycle, seq: e.seq!, updated: e.time };
  }
  return row;
}

/** inOrder is a tree with each run before those that it started. */
function inOrder(rows: Run[]): Run[] {
  const below = new Map<string, Run[]>();
  const known = new Set(rows.map(r => r.id));
  const tops: Run[] = [];
  for (const r of rows) {
    if (!r.parent || !known.has(r.parent)) tops.push(r);
    else (below.get(r.parent) ?? below.set(r.parent, []).get(r.parent)!).push(r);
  }
  const out: Run[] = [];
  const walk = (r: Run) => { out.push(r); below.get(r.id)?.forEach(walk); };
  tops.forEach(walk);
  return out;
}
