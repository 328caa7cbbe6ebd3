import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { asProblem, get, Problem } from "./api";
import { money, titleOf } from "./format";
import { Ago, ProblemBox, Ring, Standing } from "./parts";
import { Alike, QuestionCard } from "./questions";
import { questions as allQuestions, titled } from "./waiting";
import { type Entries, type Page, type Question, type Run, type State, states } from "./types";
import { type Passes, passesOf } from "./view";

const pageOfRuns = 50;
const most = 500;
const pause = 2000;

/** Polled is a value that is reloaded periodically while the page is visible. */
class Polled {
  readonly problem = signal<Problem | null>(null);
  private timer = 0;
  private gone = false;

  constructor(private readonly ask: () => Promise<void>) {}

  start(): () => void {
    const look = () => { if (!document.hidden) this.soon(); };
    document.addEventListener("visibilitychange", look);
    this.soon();
    return () => {
      this.gone = true;
      clearTimeout(this.timer);
      document.removeEventListener("visibilitychange", look);
    };
  }

  soon(): void {
    clearTimeout(this.timer);
    void this.ask().then(() => { this.problem.value = null; }, err => { this.problem.value = asProblem(err); })
      .then(() => {
        clearTimeout(this.timer);
        if (!this.gone && !document.hidden) this.timer = setTimeout(() => this.soon(), pause);
      });
  }
}

/** List holds the root runs, newest first. */
class List {
  readonly runs = signal<Run[] | null>(null);
  readonly next = signal("");
  readonly state = signal<State | "">("");
  /** loops holds the running loops with their progress at an event. */
  readonly loops = signal(new Map<string, { seq: number; passes: Passes | null }>());
  readonly polled = new Polled(() => this.ask());
  private wanted = pageOfRuns;

  private async ask(): Promise<void> {
    const state = this.state.value;
    const page = await get<Page<Run>>(`/v1/runs?limit=${this.wanted}${state && `&state=${state}`}`);
    if (state !== this.state.value) return;
    const older = (this.runs.value ?? []).slice(this.wanted).filter(r => !page.items.some(now => now.id === r.id));
    this.runs.value = [...page.items, ...older];
    if (older.length === 0) this.next.value = page.next ?? "";
    await Promise.all(page.items.filter(r => r.kind !== "Agent" && r.kind !== "Workflow" && r.state !== "ended").map(r => this.follow(r)));
  }

  private async follow(r: Run): Promise<void> {
    if (this.loops.value.get(r.id)?.seq === r.seq) return;
    const { items } = await get<Entries>(`/v1/runs/${r.id}/view?limit=5`);
    this.loops.value = new Map(this.loops.value).set(r.id, { seq: r.seq, passes: passesOf(items) });
  }

  async more(): Promise<void> {
    if (this.wanted < most) {
      this.wanted = Math.min(most, this.wanted + pageOfRuns);
      return this.polled.soon();
    }
    try {
      const page = await get<Page<Run>>(`/v1/runs?limit=${pageOfRuns}&cursor=${encodeURIComponent(this.next.value)}${this.state.value && `&state=${this.state.value}`}`);
      this.runs.value = [...this.runs.value ?? [], ...page.items];
      this.next.value = page.next ?? "";
    } catch (err) {
      this.polled.problem.value = asProblem(err);
    }
  }

  choose(state: State | ""): void {
    this.state.value = state;
    this.runs.value = null;
    this.wanted = pageOfRuns;
    this.polled.soon();
  }
}

export function RunsPage() {
  const list = useMemo(() => new List(), []);
  useEffect(() => list.polled.start(), [list]);
  useEffect(() => titled("Runs · Pawl"), []);
  const runs = list.runs.value;
  const state = list.state.value;
  return (
    <main id="main" tabIndex={-1}>
      <header class="head">
        <h1>Runs</h1>
        <label class="filter">
          <span>State</span>
          <select value={state} onChange={e => list.choose(e.currentTarget.value as State | "")}>
            <option value="">all</option>
            {states.map(s => <option key={s} value={s}>{s}</option>)}
          </select>
        </label>
      </header>
      <Trouble problem={list.polled.problem} />
      {runs === null ? !list.polled.problem.value && <p class="empty">Reading the runs…</p>
        : runs.length === 0 ? <Empty state={state} />
          : <ul class="cards">{runs.map(r => <Card key={r.id} run={r} passes={r.state === "ended" ? null : list.loops.value.get(r.id)?.passes} />)}</ul>}
      {list.next.value && <button type="button" onClick={() => void list.more()}>Show older runs</button>}
    </main>
  );
}

/** Trouble shows a problem above content that stays. */
function Trouble({ problem }: { problem: Signal<Problem | null> }) {
  return problem.value && problem.value.status !== 401 ? <ProblemBox problem={problem.value} /> : null;
}

function Empty({ state }: { state: string }) {
  return state
    ? <p class="empty">No run is {state}. Choose another state above.</p>
    : <p class="empty">There are no runs in this journal yet. Start one with <code>pawl run FILE "INPUT"</code> beside this server, or with <code>POST /v1/runs</code>.</p>;
}

function Card({ run, passes }: { run: Run; passes?: Passes | null | undefined }) {
  const outcome = run.outcome;
  return (
    <li>
      <a class="card" href={`#/runs/${run.id}`}>
        {passes && <Ring passes={passes} />}
        <span class="title">{titleOf(run)}</span>
        <Standing run={run} />
        <span class="gist">{run.input}</span>
        <span class="facts">
          <span>{run.kind}</span>
          {run.cycles > 0 && <span>{run.cycles === 1 ? "1 cycle" : `${run.cycles} cycles`}</span>}
          {outcome?.cost && <span>{money(outcome.cost)}</span>}
          {outcome?.error?.message && <span class="failure">{outcome.error.message}</span>}
          <Ago time={run.created} /><code>{run.id}</code>
        </span>
      </a>
    </li>
  );
}

/** QuestionsPage lists the open questions of all runs. */
export function QuestionsPage() {
  const page = useMemo(() => {
    const questions = signal<Question[] | null>(null);
    const polled = new Polled(async () => { questions.value = await allQuestions(); });
    return { questions, polled };
  }, []);
  useEffect(() => page.polled.start(), [page]);
  useEffect(() => titled("Questions · Pawl"), []);
  const questions = page.questions.value;
  return (
    <main id="main" tabIndex={-1}>
      <header class="head"><h1>Questions</h1></header>
      <Trouble problem={page.polled.problem} />
      {questions === null ? <p class="empty">Reading the questions…</p>
        : questions.length === 0 ? <p class="empty">There are no open questions. Calls that need an approval, reviews of iterations and blocked goals appear here.</p>
          : <><Alike questions={questions} done={() => page.polled.soon()} />{questions.map(q => <QuestionCard key={q.run + q.id} question={q} linked done={() => page.polled.soon()} />)}</>}
    </main>
  );
}
