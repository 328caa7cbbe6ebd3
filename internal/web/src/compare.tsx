import { useState } from "preact/hooks";
import { money, span, titleOf, tokens, visible } from "./format";
import { Ago, ProblemBox, Standing, Text } from "./parts";
import { useLoaded } from "./shared";
import type { ViewProps } from "./tabs";
import type { Page, Run, Shown, Usage } from "./types";

interface Side { text?: string; calls?: string[]; results?: string[]; usd: number; usage: Usage; seconds: number; outcome?: string }

interface Pair { cycle: number; same: boolean; left?: Side; right?: Side }

interface Child { step?: string; call?: number; run: string; name?: string }

interface Diff {
  left: string; right: string; step?: string; call?: number; same: number; cycles: Pair[];
  partAt?: { left?: object; right?: object; leftText: string; rightText: string };
  below?: Diff[]; onlyLeft?: Child[]; onlyRight?: Child[];
}

/** CompareView compares the run with another one, which the address names. */
export default function CompareView({ run, rest }: ViewProps) {
  return rest ? <Compared key={rest} run={run} other={rest} /> : <Choose run={run} />;
}

/** Choose offers the runs to compare with: the origin of a fork, and runs of the same name. */
function Choose({ run }: { run: Shown }) {
  const { value, problem } = useLoaded<Page<Run>>(`/v1/runs?limit=30&children=true&name=${encodeURIComponent(run.name ?? "")}`);
  const [id, setID] = useState("");
  const others = (value?.items ?? []).filter(r => r.id !== run.id && r.id !== run.forkOf);
  return (
    <section aria-label="Compare with">
      <h2>Compare with</h2>
      <form class="filters" onSubmit={e => { e.preventDefault(); if (id.trim()) location.hash = `#/runs/${run.id}/compare/${id.trim()}`; }}>
        <label class="filter"><span>Another run</span><input value={id} onInput={e => setID(e.currentTarget.value)} required /></label>
        <button type="submit">Compare</button>
      </form>
      {problem && <ProblemBox problem={problem} />}
      <ul>
        {run.forkOf && <li><a href={`#/runs/${run.id}/compare/${run.forkOf}`}>Run {run.forkOf}</a>, of which this is a fork</li>}
        {others.map(r => <li key={r.id}><a href={`#/runs/${run.id}/compare/${r.id}`}>Run {r.id}</a> {titleOf(r)} <Standing run={r} /> <Ago time={r.created} />{r.forkOf === run.id && " (a fork of this run)"}</li>)}
      </ul>
      {value && others.length === 0 && !run.forkOf && <p class="empty">There is no other run of this name.</p>}
    </section>
  );
}

function Compared({ run, other }: { run: Shown; other: string }) {
  const { value: d, problem } = useLoaded<Diff>(`/v1/runs/${run.id}/diff/${encodeURIComponent(other)}`);
  const { value: right } = useLoaded<Shown>(`/v1/runs/${encodeURIComponent(other)}`);
  if (problem) return <ProblemBox problem={problem} />;
  if (!d) return <p class="empty">Comparing…</p>;
  return (
    <section aria-label="Comparison">
      <div class="pair">
        <Facts run={run} />
        {right ? <Facts run={right} /> : <p>Run {other}</p>}
      </div>
      <Differences d={d} />
      {d.below?.map(b => (
        <p key={b.left}>{spotOf(b)}: {b.partAt ? <a href={`#/runs/${b.left}/compare/${b.right}`}>differs after {b.same} equal events</a> : "the same"}</p>
      ))}
      {[{ run: d.left, all: d.onlyLeft }, { run: d.right, all: d.onlyRight }].map(only => only.all?.map(c => (
        <p key={c.run}>{spotOf(c)}: only in {only.run}, <a href={`#/runs/${c.run}`}>run {c.run}</a></p>
      )))}
    </section>
  );
}

function spotOf(c: { step?: string; call?: number }): string { return c.call ? `call ${c.call} of an agent` : `step ${visible(c.step ?? "")}`; }

/** Facts shows what a run cost and how long it took. */
function Facts({ run }: { run: Shown }) {
  return (
    <div>
      <p><a href={`#/runs/${run.id}`}>Run {run.id}</a> <Standing run={run} /></p>
      <p class="facts"><span>{money(run.cost, run.usage)}</span><span>{tokens(run.usage)}</span><span>{span(Date.parse(run.updated) - Date.parse(run.created))}</span></p>
    </div>
  );
}

function Differences({ d }: { d: Diff }) {
  const [shown, setShown] = useState(60);
  if (!d.partAt) return <p><span class="chip good">the same</span> All {d.same} events that are compared are equal.</p>;
  const cycles = d.cycles.filter(c => !c.same);
  const equal = d.cycles.length - cycles.length;
  return (
    <>
      <h2>The first difference</h2>
      <p>{d.same} events are equal before it.</p>
      <div class="pair">
        {([[d.partAt.leftText, d.partAt.left], [d.partAt.rightText, d.partAt.right]] as const).map(([text, whole], i) => (
          <div key={i}>
            <p class={i === 0 ? "removed" : "added"}>{visible(text)}</p>
            {whole && <details><summary>The whole event</summary><Text label={`Event of run ${i === 0 ? d.left : d.right}`}>{JSON.stringify(whole, null, 2)}</Text></details>}
          </div>
        ))}
      </div>
      {d.cycles.length > 0 && <h2>Cycles</h2>}
      {equal > 0 && <p>{equal === 1 ? "1 cycle is" : `${equal} cycles are`} equal.</p>}
      {cycles.slice(0, shown).map(c => (
        <section key={c.cycle} aria-label={`Cycle ${c.cycle}`}>
          <h3>Cycle {c.cycle}</h3>
          <div class="pair"><Cycle side={c.left} /><Cycle side={c.right} /></div>
        </section>
      ))}
      {cycles.length > shown && <button type="button" onClick={() => setShown(shown + 60)}>Show {Math.min(60, cycles.length - shown)} more of {cycles.length - shown} cycles that differ</button>}
    </>
  );
}

function Cycle({ side }: { side: Side | undefined }) {
  if (!side) return <p class="empty">It had ended.</p>;
  return (
    <div>
      <p class="facts"><span>{tokens(side.usage)}</span><span>{side.usd > 0 && money({ usd: side.usd, priced: true })}</span><span>{span(1000 * side.seconds)}</span>{side.outcome && <span>ends: {visible(side.outcome)}</span>}</p>
      {side.text && <Text label="What the model said">{side.text}</Text>}
      {side.calls?.map((call, i) => <div key={i} class="note"><span>→ {visible(call)}</span><Text label={`Result of ${call}`} quiet>{side.results?.[i] ?? ""}</Text></div>)}
    </div>
  );
}
