import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "./api";
import { follow } from "./feed";
import { span, visible } from "./format";
import { Act, ProblemBox } from "./parts";
import { useLoaded } from "./shared";
import type { ViewProps } from "./tabs";

const lanes = { model: "Model", tool: "Tools", child: "Runs below", person: "Waits for people", pause: "Pauses" } as const;

interface Bar {
  seq: number; entry?: string; lane: keyof typeof lanes; name: string; cycle?: number; attempt?: number; run?: string; start: string; end?: string; failed?: boolean; critical?: boolean;
}

/** BarsPage is a page of bars, of which the first page has the last ones. */
interface BarsPage { items: Bar[]; earlier?: number; until: string }

/** joined adds a page to those that are there. A bar that is there is replaced. */
function joined(was: BarsPage | null, page: BarsPage): BarsPage {
  if (!was) return page;
  const bars = new Map([...was.items, ...page.items].map(b => [b.seq, b]));
  const older = (page.items[0]?.seq ?? Infinity) <= (was.items[0]?.seq ?? Infinity);
  return { items: [...bars.values()].sort((a, b) => a.seq - b.seq), earlier: (older ? page : was).earlier ?? 0, until: page.until };
}

/** Span is a bar with its times in milliseconds. */
interface Span { bar: Bar; from: number; to: number }

/** Scale maps times to shares of the width. Waits that nothing else fills are compressed. */
interface Scale { at(time: number): number; gaps: { from: number; to: number }[]; begin: number; end: number }

const longWait = 2000;
const waitShare = 0.03;
const pause = 1000;
const mostBars = 150;

/** gapsOf returns the spans of time in which a run did nothing but wait. */
function gapsOf(spans: Span[], begin: number, end: number): { from: number; to: number }[] {
  const asks = new Map<string, Span[]>();
  for (const s of spans) if (s.bar.lane === "person" && s.bar.run) asks.set(s.bar.run, [...asks.get(s.bar.run) ?? [], s]);
  const busy = spans.flatMap((s): { from: number; to: number }[] => {
    if (s.bar.lane === "person" || s.bar.lane === "pause") return [];
    const parts = [];
    let from = s.from;
    for (const wait of asks.get(s.bar.run ?? "-") ?? []) { // a run below that waits is not busy
      parts.push({ from, to: wait.from });
      from = wait.to;
    }
    return [...parts, { from, to: s.to }].filter(p => p.to >= p.from);
  }).sort((a, b) => a.from - b.from);
  const gaps = [];
  let at = begin;
  for (const b of [...busy, { from: end, to: end }]) {
    if (b.from - at > longWait) gaps.push({ from: at, to: b.from });
    at = Math.max(at, b.to);
  }
  return gaps;
}

function scaleOf(spans: Span[], compressed: boolean, from: number, to: number): Scale {
  const begin = Math.min(...spans.map(s => s.from));
  const end = Math.max(...spans.map(s => s.to), begin + 1);
  const gaps = compressed ? gapsOf(spans, begin, end) : [];
  const active = Math.max(1, end - begin - gaps.reduce((n, g) => n + g.to - g.from, 0));
  const short = waitShare * active;
  const flat = (time: number) => time - begin - gaps.reduce((n, g) => n + Math.max(0, Math.min(time, g.to) - g.from) * Math.max(0, 1 - short / (g.to - g.from)), 0);
  const all = flat(end);
  const share = (time: number) => (flat(time) / all - from / 100) / (Math.max(to - from, 1) / 100);
  return { at: share, gaps, begin, end };
}

/** rowsOf puts the spans of a lane into rows in which none overlaps. */
function rowsOf(spans: Span[]): Span[][] {
  const rows: Span[][] = [];
  for (const s of spans) {
    const row = rows.find(r => r.at(-1)!.to <= s.from);
    if (row) row.push(s);
    else rows.push([s]);
  }
  return rows;
}

function wordsOf({ bar: b, from, to }: Span): string {
  return [
    lanes[b.lane], visible(b.name), b.cycle && `cycle ${b.cycle}`, b.attempt && `attempt ${b.attempt}`, b.end ? span(to - from) : `${span(to - from)} so far`, b.failed && "failed", b.critical && "on the critical path",
  ].filter(Boolean).join(", ");
}

/** TimelineView shows what a run did over time. */
export default function TimelineView({ run, rest }: ViewProps) {
  const [seq, setSeq] = useState(0);
  const { value, problem } = useLoaded<BarsPage>(`/v1/runs/${run.id}/timeline${seq ? `#${seq}` : ""}`);
  const [kept, setKept] = useState(value);
  useEffect(() => { if (value) setKept(was => joined(was, value)); }, [value]);
  const more = () => get<BarsPage>(`/v1/runs/${run.id}/timeline?before=${kept!.items[0]!.seq}`).then(page => setKept(was => joined(was, page)));
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = follow({ run: changed => { if (changed.id === (run.root || run.id)) timer ??= setTimeout(() => { timer = undefined; setSeq(changed.seq); }, pause); } });
    return () => { stop(); clearTimeout(timer); };
  }, [run.id]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!kept) return <p class="empty">Reading the timeline…</p>;
  if (kept.items.length === 0) return <p class="empty">The run has not called a model or a tool yet, and waits for nothing.</p>;
  return <Bars run={run.id} bars={kept.items} earlier={kept.earlier ?? 0} more={more} until={Date.parse(kept.until)} rest={rest} />;
}

function Bars({ run, bars, earlier, more, until, rest }: { run: string; bars: Bar[]; earlier: number; more: () => Promise<unknown>; until: number; rest: string }) {
  const [compressed, setCompressed] = useState(true);
  const [range, setRange] = useState<[number, number]>([0, 100]);
  const spans = useMemo(() => bars.map(bar => ({ bar, from: Date.parse(bar.start), to: Math.max(Date.parse(bar.end ?? "") || until, Date.parse(bar.start)) })), [bars, until]);
  const scale = useMemo(() => scaleOf(spans, compressed, range[0], range[1]), [spans, compressed, range]);
  const chosen = spans.find(s => String(s.bar.seq) === rest) ?? spans.find(s => s.bar.entry === rest);
  const zoom = (s: Span) => {
    const whole = scaleOf(spans, compressed, 0, 100);
    const [from, to] = [100 * whole.at(s.from), 100 * whole.at(s.to)];
    const room = Math.max(2, to - from);
    setRange([Math.max(0, Math.floor(from - room / 2)), Math.min(100, Math.ceil(to + room / 2))]);
  };
  const slider = (name: string, side: 0 | 1) => (
    <label class="filter"><span>{name}</span><input type="range" min={0} max={100} value={range[side]} aria-valuetext={`${range[side]} %`} onInput={e => {
      const n = Number(e.currentTarget.value);
      setRange(side === 0 ? [Math.min(n, range[1] - 1), range[1]] : [range[0], Math.max(n, range[0] + 1)]);
    }} /></label>
  );
  return (
    <section aria-label="Timeline">
      <div class="filters">
        <label class="filter"><input type="checkbox" checked={compressed} onChange={() => setCompressed(!compressed)} /><span>Waits compressed{compressed && scale.gaps.length > 0 && ` (${scale.gaps.length}, together ${span(scale.gaps.reduce((n, g) => n + g.to - g.from, 0))})`}</span></label>
        {slider("From", 0)}{slider("To", 1)}
        <button type="button" onClick={() => setRange([0, 100])}>All of it</button>
        {chosen && <button type="button" onClick={() => zoom(chosen)}>Zoom to the chosen bar</button>}
      </div>
      {earlier > 0 && <div class="acts"><span class="why">{earlier.toLocaleString()} bars before these are left out.</span> <Act name="Show earlier bars" act={more} /></div>}
      <div class="lanes">
        {(Object.keys(lanes) as Bar["lane"][]).map(lane => <Lane key={lane} name={lanes[lane]} run={run} scale={scale} chosen={chosen} spans={spans.filter(s => s.bar.lane === lane)} />)}
      </div>
      {chosen ? (
        <section class="chosen" aria-label="The chosen bar">
          <h2>{visible(chosen.bar.name)} {chosen.bar.failed && <span class="chip bad">failed</span>} {chosen.bar.critical && <span class="chip wait">critical path</span>}</h2>
          <p>{wordsOf(chosen)}</p>
          <p class="facts">
            <span>began {new Date(chosen.from).toLocaleString()}</span>
            {chosen.bar.entry && <a href={`#/runs/${run}/e/${chosen.bar.entry}`}>{chosen.bar.lane === "model" ? `cycle ${chosen.bar.cycle}` : "its entry"} in what it did</a>}
            {chosen.bar.run && <a href={`#/runs/${chosen.bar.run}/timeline`}>timeline of run {chosen.bar.run}</a>}
          </p>
        </section>
      ) : <p class="why">A bar that is chosen leads to what it did. A thick frame marks the critical path: without those bars the run would have ended sooner.</p>}
    </section>
  );
}

/** Lane draws the bars of one kind that are in the range. */
function Lane({ name, run, spans, scale, chosen }: { name: string; run: string; spans: Span[]; scale: Scale; chosen: Span | undefined }) {
  if (spans.length === 0) return null;
  let drawn = 0;
  return (
    <section class="lane" aria-label={name}>
      <h2>{name}</h2>
      {rowsOf(spans).map((row, i) => {
        let free = -1;
        return (
          <div class="row" key={i}>
            {row.map(s => {
              const left = Math.max(0, Math.min(scale.at(s.from), 0.998));
              const right = Math.min(1, scale.at(s.to));
              if (right < 0 || scale.at(s.from) > 1.001 || s !== chosen && (right < free || drawn >= mostBars)) return null; // it is out of the range, or below a bar that is drawn
              free = Math.max(right, left + 0.002);
              drawn++;
              const b = s.bar;
              return (
                <a
                  key={b.seq} href={`#/runs/${run}/timeline/${b.seq}`} title={wordsOf(s)} aria-label={wordsOf(s)} aria-current={s === chosen ? "true" : undefined}
                  class={`bar-of ${b.lane} ${b.failed ? "failed" : ""} ${b.critical ? "critical" : ""}`} style={{ left: `${100 * left}%`, width: `max(3px, ${100 * (right - left)}%)` }}
                >
                  {right - left > 0.06 && `${visible(b.name)}${b.attempt ? ` (attempt ${b.attempt})` : ""}`}
                </a>
              );
            })}
          </div>
        );
      })}
    </section>
  );
}
