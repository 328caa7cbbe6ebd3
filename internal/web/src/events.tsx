import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { asProblem, get, listen, type Problem } from "./api";
import { download } from "./download";
import { visible } from "./format";
import { Act, ProblemBox, Text } from "./parts";
import { Copy, useLoaded } from "./shared";
import type { ViewProps } from "./tabs";
import type { Page, Shown } from "./types";

/** JournalEvent is an event as the journal has it. */
interface JournalEvent { pos: number; seq: number; run: string; time: string; type: string; cycle?: number; step?: string; data: object }

const pageOfEvents = 200;
const rowHeight = 32; // as in the style sheet

/** Events are those of a run, of all types or of some, of which the pages in view are loaded. */
class Events {
  readonly rows = new Map<number, JournalEvent>();
  problem: Problem | null = null;
  total: number;
  private next = "";
  private whole = false;
  private readonly asked = new Set<number>();

  constructor(readonly run: string, readonly types: string[], seq: number, readonly changed: () => void, readonly gone: AbortSignal) {
    this.total = types.length > 0 ? 0 : seq;
    if (types.length > 0) this.need(0);
  }

  /** need loads the page that has a row. The rows of some types come one page after the other. */
  need(row: number): void {
    const page = this.types.length > 0 ? Math.ceil(this.total / pageOfEvents) : Math.floor(row / pageOfEvents);
    if (this.asked.has(page) || this.whole) return;
    this.asked.add(page);
    const q = new URLSearchParams({ limit: String(pageOfEvents) });
    for (const type of this.types) q.append("type", type);
    if (this.types.length === 0) q.set("from", String(page * pageOfEvents + 1));
    else if (this.next) q.set("cursor", this.next);
    void get<Page<JournalEvent>>(`/v1/runs/${this.run}/events?${q}`, this.gone).then(got => {
      const first = this.types.length > 0 ? this.total : page * pageOfEvents;
      got.items.forEach((e, i) => this.rows.set(first + i, e));
      if (this.types.length > 0) {
        this.total += got.items.length;
        this.next = got.next ?? "";
        this.whole = !this.next;
      }
      this.problem = null;
      this.changed();
    }, err => {
      if (this.gone.aborted) return;
      this.asked.delete(page);
      this.problem = asProblem(err);
      this.changed();
    });
  }

  /** add appends events that came later. */
  add(events: JournalEvent[]): void {
    for (const e of events) {
      if (this.types.length > 0 ? this.whole && this.types.includes(e.type) : e.seq > this.total) this.rows.set(this.types.length > 0 ? this.total++ : (this.total = e.seq) - 1, e);
    }
    this.changed();
  }
}

/** EventsView shows the journal of the run as it is; the address names the event that is shown whole. */
export default function EventsView({ run, rest }: ViewProps) {
  const [filter, setFilter] = useState("");
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const [top, setTop] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const gone = useMemo(() => new AbortController(), [run.id]);
  useEffect(() => () => gone.abort(), [gone]);
  const events = useMemo(() => new Events(run.id, filter.split(/[\s,]+/).filter(Boolean), run.seq, () => redraw(0), gone.signal), [run.id, filter]);
  const latest = useRef(events);
  latest.current = events;
  useEffect(() => {
    if (run.state === "ended") return;
    void get<Page<JournalEvent>>(`/v1/runs/${run.id}/events?limit=1&from=${run.seq}`, gone.signal).then(last => listen<JournalEvent>(
      `/v1/runs/${run.id}/events`, last.items[0]?.pos ?? 0, gone.signal, told => latest.current.add(told.map(t => t.data).filter(e => e.seq > 0)), () => { /* what has come is shown */ },
    ), () => { /* the page of events says why */ });
  }, [run.id]);
  const height = list.current?.clientHeight ?? 600;
  const first = Math.max(0, Math.floor(top / rowHeight) - 10);
  const last = Math.min(events.total, first + Math.ceil(height / rowHeight) + 20);
  useEffect(() => {
    for (let row = first; row < last; row++) if (!events.rows.has(row)) events.need(row);
    if (events.types.length > 0 && last >= events.total) events.need(last);
  });
  const types = useMemo(() => [...new Set([...events.rows.values()].map(e => e.type))].sort(), [events, events.rows.size]);
  return (
    <section aria-label="Events">
      <Checks run={run} />
      <form class="filters" onSubmit={e => { e.preventDefault(); setFilter(new FormData(e.currentTarget).get("type") as string); list.current?.scrollTo(0, 0); }}>
        <label class="filter"><span>Types</span><input type="search" name="type" list="types" placeholder="tool_call tool_result" /></label>
        <datalist id="types">{types.map(t => <option key={t} value={t} />)}</datalist>
        <button type="submit">Show these</button>
        <span role="status">{events.types.length === 0 ? `${events.total.toLocaleString()} events` : `${events.total.toLocaleString()} found so far`}</span>
      </form>
      {events.problem && <ProblemBox problem={events.problem} />}
      {events.types.length > 0 && events.total === 0 && !events.problem && <p class="empty">No event of these types.</p>}
      <div class="virtual" ref={list} role="region" aria-label="The events in order" tabIndex={0} onScroll={e => setTop(e.currentTarget.scrollTop)}>
        <ol style={{ height: `${events.total * rowHeight}px` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, k) => first + k).map(row => {
            const e = events.rows.get(row);
            return (
              <li key={row} style={{ top: `${row * rowHeight}px` }} aria-setsize={events.total} aria-posinset={row + 1}>
                {e ? (
                  <a href={`#/runs/${run.id}/events/${e.seq}`} aria-current={String(e.seq) === rest ? "true" : undefined}>
                    <span class="seq">{e.seq}</span> <time dateTime={e.time} title={e.time}>{new Date(e.time).toLocaleTimeString()}</time> <span class="name">{visible(e.type)}</span>{" "}
                    <span class="gist">{e.step && `${visible(e.step)} `}{visible(JSON.stringify(e.data).slice(0, 300))}</span>
                  </a>
                ) : "…"}
              </li>
            );
          })}
        </ol>
      </div>
      {rest && <Whole run={run.id} seq={rest} />}
    </section>
  );
}

/** Whole shows one event as the journal has it. */
function Whole({ run, seq }: { run: string; seq: string }) {
  const { value, problem } = useLoaded<Page<JournalEvent>>(`/v1/runs/${run}/events?limit=1&from=${encodeURIComponent(seq)}`);
  if (problem) return <ProblemBox problem={problem} />;
  const e = value?.items[0];
  if (!value) return <p class="empty">Reading…</p>;
  if (!e) return <p class="empty">The run has no event {seq}.</p>;
  const text = JSON.stringify(e, null, 2);
  return (
    <section aria-label={`Event ${seq}`}>
      <h2>Event {seq}, {visible(e.type)}</h2>
      <div class="acts"><Copy text={text} /><a href={`#/runs/${run}/e/${seq}`}>its place in the run</a></div>
      <Text label={`Event ${seq} as JSON`}>{text}</Text>
    </section>
  );
}

interface Verified { ok: boolean; events: number; head: string; problem?: string; breaksAt?: number; below?: number; unsound?: { run: string; problem?: string }[] }

interface Replayed {
  decisions: number; requests: number; compared: number; below?: Replayed[]; run: string;
  divergences: { seq: number; type: string; what: string; recorded?: string; now?: string }[];
}

/** Checks shows whether the journal is whole, and proves the run. */
function Checks({ run }: { run: Shown }) {
  const { value: v, problem } = useLoaded<Verified>(`/v1/runs/${run.id}/verify`);
  const [replayed, setReplayed] = useState<Replayed | null>(null);
  return (
    <>
      <p class="facts" role="status" aria-label="The chain">
        {problem ? <span>The chain could not be checked: {problem.message}</span>
          : !v ? <span>Checking the chain…</span>
            : v.ok ? <><span class="chip good">chain ok</span><span>{v.events.toLocaleString()} events, head <code>{v.head}</code>{v.below ? `, and ${v.below} runs below` : ""}</span></>
              : <><span class="chip bad">{v.breaksAt ? `the chain breaks at event ${v.breaksAt}` : "the chain is broken"}</span><span>{visible(v.problem ?? "")}</span>
                {v.breaksAt && <a href={`#/runs/${run.id}/events/${v.breaksAt}`}>event {v.breaksAt}</a>}
                {v.unsound?.map(u => <span key={u.run}><a href={`#/runs/${u.run}/events`}>run {u.run}</a>: {visible(u.problem ?? "")}</span>)}</>}
      </p>
      <div class="acts" role="group" aria-label="Proofs">
        <Act name="Replay" act={() => get<Replayed>(`/v1/runs/${run.id}/replay`).then(setReplayed)} />
        <Act name="Export" act={() => download(`/v1/runs/${run.id}/export`, `${run.id}.jsonl`)} />
      </div>
      {replayed && <Proof run={replayed} />}
    </>
  );
}

function Proof({ run }: { run: Replayed }) {
  const all = [run, ...run.below ?? []];
  const sum = (of: (r: Replayed) => number) => all.reduce((n, r) => n + of(r), 0).toLocaleString();
  const wrong = all.flatMap(r => r.divergences.map(d => ({ ...d, run: r.run })));
  const what = `${sum(r => r.decisions)} decisions and ${sum(r => r.requests)} requests`;
  const bytes = all.every(r => r.compared === r.requests) ? "byte for byte" : `${sum(r => r.compared)} of the requests byte for byte; the others' models have no bytes here`;
  if (wrong.length === 0) return <p role="status" aria-label="Replay"><span class="chip good">the same</span> {what}, {bytes}</p>;
  const d = wrong[0]!;
  return (
    <div class="problem" role="status" aria-label="Replay">
      <strong>{wrong.length === 1 ? "1 difference" : `${wrong.length} differences`} in {what}</strong>
      <p>The first is <a href={`#/runs/${d.run}/events/${d.seq}`}>event {d.seq}</a> ({visible(d.type)}): {visible(d.what)}</p>
      {d.recorded && <Text label="Recorded">{d.recorded}</Text>}
      {d.now && <Text label="Now">{d.now}</Text>}
    </div>
  );
}
