import { batch, signal } from "@preact/signals";
import { type Connection, Problem, asProblem, get, listen, sleep } from "./api";
import type { Entries, Limit, Page, Run, Shown, Told } from "./types";
import { RunView } from "./view";

const pageOfRuns = 100;

/** Head is a run's row and, once loaded, its cost and its questions. */
export type Head = Run & Partial<Shown>;

/** Tree is a run with all its descendants, kept up to date. */
export class Tree {
  readonly head = signal<Head | null>(null);
  /** problem is why the run cannot be shown. */
  readonly problem = signal<Problem | null>(null);
  readonly rows = signal<Run[]>([]);
  readonly moreRows = signal("");
  readonly connection = signal<{ stands: Connection; why?: Problem }>({ stands: "connecting" });
  /** ready resolves when the newest entries are loaded. */
  readonly ready: Promise<void>;
  private loaded!: () => void;
  private readonly views = new Map<string, RunView>();
  private readonly gone = new AbortController();
  private queue: Told[] = [];
  private flushing = false;
  private asking = false;
  private askAgain = false;

  constructor(readonly id: string) { this.ready = new Promise(done => { this.loaded = done; }); }

  async start(): Promise<void> {
    const root = this.view(this.id);
    for (let wait = 500; ; wait = Math.min(2 * wait, 10_000)) {
      try {
        await this.moreOfTree();
        this.head.value = this.rows.value[0] ?? null;
        await root.more("", this.gone.signal);
        this.loaded();
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
    if (this.head.value?.state === "ended") {
      this.connection.value = { stands: "over" };
      this.refresh();
      return;
    }
    this.refresh();
    await listen(`/v1/runs/${this.id}/view?tree=true&deltas=true`, root.pos, this.gone.signal,
      told => this.hear(told),
      (stands, why) => {
        if (stands === "live") this.beginAgain();
        this.connection.value = why ? { stands, why } : { stands };
      });
    this.refresh();
  }

  close(): void { this.gone.abort(); }

  /** view returns the view of a run of the tree. */
  view(run: string): RunView {
    let view = this.views.get(run);
    if (!view) this.views.set(run, view = new RunView(run));
    return view;
  }

  /** beginAgain drops partial answers: a new stream begins with their text so far. */
  private beginAgain(): void {
    for (const view of this.views.values()) view.said = view.thought = "";
  }

  async moreOfTree(): Promise<void> {
    const cursor = this.moreRows.value;
    const page = await get<Page<Run>>(`/v1/runs/${this.id}/tree?limit=${pageOfRuns}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, this.gone.signal);
    const known = new Set(this.rows.value.map(r => r.id));
    this.rows.value = [...this.rows.value, ...page.items.filter(r => !known.has(r.id))];
    this.moreRows.value = page.next ?? "";
  }

  /**
   * refresh loads the state, the cost and the questions of the run and its descendants. That is
   * expensive for a large tree, so it then waits four times as long as that took.
   */
  refresh(): void {
    if (this.asking) {
      this.askAgain = true;
      return;
    }
    this.asking = true;
    const began = performance.now();
    const wanted = Math.max(pageOfRuns, Math.min(this.rows.value.length, 500));
    Promise.all([
      get<Shown>(`/v1/runs/${this.id}`, this.gone.signal),
      get<Page<Run>>(`/v1/runs/${this.id}/tree?limit=${wanted}`, this.gone.signal),
    ]).then(async ([shown, page]) => [shown, page, shown.state === "parked" ? await this.limit() : null] as const).then(([shown, page, limit]) => batch(() => {
      const root = this.view(this.id);
      root.limit = limit;
      root.changed();
      if (shown.seq >= (this.head.value?.seq ?? 0)) this.head.value = shown;
      const now = new Set(page.items.map(r => r.id));
      this.rows.value = [...page.items, ...this.rows.value.filter(r => !now.has(r.id))];
      if (this.rows.value.length === page.items.length) this.moreRows.value = page.next ?? "";
    }))
      .catch(() => { /* the stream says that the server is away, and its first word is asked about */ })
      .then(() => sleep(Math.max(100, 4 * (performance.now() - began)), this.gone.signal))
      .then(() => {
        this.asking = false;
        if (this.askAgain && !this.gone.signal.aborted) {
          this.askAgain = false;
          this.refresh();
        }
      });
  }

  /** limit loads the limit at which the run has parked. */
  private async limit(): Promise<Limit | null> {
    return (await get<Entries>(`/v1/runs/${this.id}/view?limit=1`, this.gone.signal)).limit ?? null;
  }

  /** hear applies changes in the next frame, all at once. */
  private hear(told: Told[]): void {
    for (const t of told) this.queue.push(t);
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

  private takeAll(told: Told[]): void {
    const touched = new Set<RunView>();
    let moved = false;
    for (const { type, data } of told) {
      const view = this.view(data.run);
      switch (type) {
        case "entry":
          view.take(data.entry!);
          moved = true;
          break;
        case "text": view.said += data.data?.text ?? ""; break;
        case "reasoning": view.thought += data.data?.text ?? ""; break;
        case "text.reset": view.said = view.thought = ""; break;
        case "tool.progress": view.setProgress(data.data!); break;
      }
      touched.add(view);
    }
    for (const view of touched) view.changed();
    if (moved) this.refresh();
  }
}
