import type { Signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { decides, principal, Problem } from "./api";
import { connection } from "./feed";
import { money, titleOf, visible } from "./format";
import { queryOf, RunList, takes, type Verb } from "./list";
import { Act, Ago, ProblemBox, Ring, Standing } from "./parts";
import { Alike, Closed, QuestionCard } from "./questions";
import { askToNotify, decidedHere, mayNotify, problem as questionsProblem, questions as allQuestions, titled, type Waiting } from "./waiting";
import { type Run, states } from "./types";
import type { Passes } from "./view";

const outcomes = ["completed", "stopped", "failed", "cancelled"];

/** RunsPage lists the root runs that the filters in the address, place, select. */
export function RunsPage({ place }: { place: string }) {
  const query = queryOf(place);
  const key = query.toString();
  const list = useMemo(() => new RunList(query), [key]);
  useEffect(() => list.start(), [list]);
  useEffect(() => titled("Runs · Pawl"), []);
  const runs = list.runs.value;
  const kinds = [...new Set([query.get("kind") ?? "", ...runs?.map(r => r.kind) ?? []])].filter(Boolean).sort();
  const choose = (name: string, value: string) => {
    const q = new URLSearchParams(query);
    if (value) q.set(name, value);
    else q.delete(name);
    location.hash = q.size > 0 ? `#/?${q}` : "#/";
  };
  const select = (name: string, label: string, values: readonly string[]) => (
    <label class="filter">
      <span>{label}</span>
      <select value={query.get(name) ?? ""} onChange={e => choose(name, e.currentTarget.value)}>
        <option value="">all</option>
        {values.map(v => <option key={v} value={v}>{v}</option>)}
      </select>
    </label>
  );
  const bound = (name: string) => useTyped(query.get(name) ?? "", value => choose(name, value));
  const [text, since, until] = [bound("text"), bound("since"), bound("until")];
  return (
    <main id="main" tabIndex={-1}>
      <header class="head">
        <h1>Runs</h1>
        <Connected />
      </header>
      <search class="filters">
        {select("state", "State", states)}
        {select("outcome", "Outcome", outcomes)}
        {select("kind", "Kind", kinds)}
        <label class="filter"><span>Name or input</span><input type="search" {...text} /></label>
        <label class="filter"><span>Since</span><input type="date" {...since} /></label>
        <label class="filter"><span>Until</span><input type="date" {...until} /></label>
      </search>
      <Trouble problem={list.problem} />
      {decides() && runs && runs.length > 0 && <Bulk list={list} runs={runs} />}
      {runs === null ? !list.problem.value && <p class="empty">Reading the runs…</p>
        : runs.length === 0 ? <Empty filtered={query.size > 0} />
          : <ul class="cards">{runs.map(r => <Card key={r.id} run={r} list={list} chosen={list.chosen.value.has(r.id)} passes={r.state === "ended" ? null : list.loops.value.get(r.id)} />)}</ul>}
      {list.next.value && <button type="button" onClick={() => void list.more()}>Show older runs</button>}
    </main>
  );
}

/** useTyped is a filter that is typed. A change of the list does not disturb what is not entered yet. */
function useTyped(value: string, choose: (value: string) => void) {
  const [typed, setTyped] = useState<string>();
  useEffect(() => setTyped(undefined), [value]);
  return {
    value: typed ?? value,
    onInput: (e: { currentTarget: HTMLInputElement }) => setTyped(e.currentTarget.value),
    onChange: (e: { currentTarget: HTMLInputElement }) => choose(e.currentTarget.value.trim()),
  };
}

/** Bulk shows the commands for the marked runs, each with the number of runs that accept it. */
function Bulk({ list, runs }: { list: RunList; runs: Run[] }) {
  const chosen = runs.filter(r => list.chosen.value.has(r.id));
  const all = chosen.length === runs.length;
  const of = (verb: Verb) => chosen.filter(r => takes(verb, r));
  const several = (n: number) => n === 1 ? "1 run" : `${n} runs`;
  return (
    <section class="acts" aria-label="Several runs">
      <label class="filter"><input type="checkbox" checked={all} onChange={() => list.choose(runs.map(r => r.id), !all)} /><span>{chosen.length > 0 ? `${chosen.length} marked` : "Mark all"}</span></label>
      {of("cancel").length > 0 && <Act name={`Cancel ${several(of("cancel").length)}`} kind="bad" wants="Why? (may be left out)" last={`Cancel ${several(of("cancel").length)} now`} act={reason => list.doAll(of("cancel"), "cancel", reason ? { reason } : {})} />}
      {of("resume").length > 0 && <Act name={`Resume ${several(of("resume").length)}`} kind="good" act={() => list.doAll(of("resume"), "resume", {})} />}
      {principal.value?.role === "admin" && of("remove").length > 0 && <Act name={`Remove ${several(of("remove").length)}`} kind="bad" last={`Remove ${several(of("remove").length)} for ever`} sure act={() => list.doAll(of("remove"), "remove", {})} />}
      {list.failed.value.map(([id, problem]) => <div key={id} class="problem" role="alert"><strong>Run {id}: {problem.title}</strong><p>{problem.detail}</p>{problem.next && <p class="next">{problem.next}</p>}</div>)}
    </section>
  );
}

/** Connected shows that the content may be out of date. */
function Connected() {
  return connection.value.state === "lost" && <p class="connection lost" role="status">Connection lost; reconnecting.</p>;
}

/** Trouble shows a problem above content that stays. */
function Trouble({ problem }: { problem: Signal<Problem | null> }) {
  return problem.value && problem.value.status !== 401 ? <ProblemBox problem={problem.value} /> : null;
}

function Empty({ filtered }: { filtered: boolean }) {
  return filtered
    ? <p class="empty">No run matches these filters. <a href="#/">Show all runs</a></p>
    : <p class="empty">There are no runs in this journal yet. Start one with <code>pawl run FILE "INPUT"</code> beside this server, or with <code>POST /v1/runs</code>.</p>;
}

function Card({ run, list, chosen, passes }: { run: Run; list: RunList; chosen: boolean; passes: Passes | null | undefined }) {
  const outcome = run.outcome;
  return (
    <li class={decides() ? "marked" : undefined}>
      {decides() && <input type="checkbox" aria-label={`Mark run ${run.id}`} checked={chosen} onChange={() => list.choose([run.id], !chosen)} />}
      <a class="card" href={`#/runs/${run.id}`}>
        {passes && <Ring passes={passes} />}
        <span class="title">{titleOf(run)}</span>
        <Standing run={run} />
        <span class="gist">{visible(run.input ?? "")}</span>
        <span class="facts">
          <span>{run.kind}</span>
          {run.cycles > 0 && <span>{run.cycles === 1 ? "1 cycle" : `${run.cycles} cycles`}</span>}
          {outcome?.cost && <span>{money(outcome.cost)}</span>}
          {outcome?.error?.message && <span class="failure">{visible(outcome.error.message)}</span>}
          <Ago time={run.created} /><code>{run.id}</code>
        </span>
      </a>
    </li>
  );
}

/** QuestionsPage lists the open questions of all runs. */
export function QuestionsPage() {
  useEffect(() => titled("Questions · Pawl"), []);
  const all = allQuestions.value;
  const open = all?.filter(w => w.became === undefined).map(w => w.question) ?? [];
  return (
    <main id="main" tabIndex={-1}>
      <header class="head"><h1>Questions</h1>{mayNotify.value === "default" && <button type="button" onClick={() => void askToNotify()}>Notify me</button>}<Connected /></header>
      <Trouble problem={questionsProblem} />
      {all === null ? <p class="empty">Reading the questions…</p>
        : all.length === 0 ? <p class="empty">There are no open questions. Calls that need an approval, reviews of iterations and blocked goals appear here.</p>
          : <><Alike questions={open} done={q => decidedHere(q)} />{all.map(w => <Asked key={w.question.run + w.question.id} waiting={w} />)}</>}
    </main>
  );
}

/** Asked shows a question or, in its place, how it was closed. */
function Asked({ waiting: { question, became } }: { waiting: Waiting }) {
  if (became === undefined) return <QuestionCard question={question} linked done={() => decidedHere(question)} />;
  return <Closed question={question} became={became} />;
}
