import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { decides, post } from "./api";
import type { Call, Child, Cycle, Entry, RunView, Step } from "./fold";
import { money, pretty, span, titleOf, tokens } from "./format";
import { Act, Ago, NoteLine, Notes, Panel, ProblemBox, Prose, Ring, Standing, Text } from "./parts";
import { QuestionCard } from "./questions";
import { type Head, Tree } from "./tree";
import type { Run } from "./types";

/** RunPage is one run with all below it. */
export function RunPage({ id }: { id: string }) {
  const tree = useMemo(() => new Tree(id), [id]);
  useEffect(() => {
    void tree.start();
    return () => tree.close();
  }, [tree]);
  const head = tree.head.value;
  useEffect(() => { if (head) document.title = `${titleOf(head)} · Pawl`; }, [head?.name]);
  const problem = tree.problem.value;
  if (problem) return <main id="main" tabIndex={-1}><h1>Run {id}</h1><ProblemBox problem={problem} /></main>;
  if (!head) return <main id="main" tabIndex={-1}><h1>Run {id}</h1><p class="empty">Reading the run…</p><Connected tree={tree} /></main>;
  return <RunShown key={id} tree={tree} head={head} />;
}

function RunShown({ tree, head }: { tree: Tree; head: Head }) {
  const root = tree.view(tree.id);
  root.rev.value;
  const passes = head.state === "ended" ? null : root.passes();
  const outcome = head.outcome;
  const usage = outcome?.usage ?? head.usage;
  const below = tree.rows.value.length > 1 || tree.moreRows.value !== "";
  return (
    <main id="main" tabIndex={-1} class={below ? "run with-tree" : "run"}>
      <header class="head">
        {passes && <Ring passes={passes} />}
        <div>
          {head.parent && <p class="crumbs"><a href={`#/runs/${head.root}`}>the whole tree</a> › <a href={`#/runs/${head.parent}`}>the run above</a></p>}
          <h1>{titleOf(head)} <Standing run={head} /></h1>
          <p class="facts">
            <span>{head.kind}</span><span><code>{head.id}</code></span>
            {root.started?.config?.targets?.[0]?.model && <span>{root.started.config.targets[0].model}</span>}
            <span>{money(outcome?.cost ?? head.cost, usage)}</span><span>{tokens(usage)}</span>
            {head.state === "ended" && <span>took {span(Date.parse(head.updated) - Date.parse(head.created))}</span>}
            <span>began <Ago time={head.created} /></span>
          </p>
        </div>
        <Connected tree={tree} />
      </header>
      {decides() && <Actions tree={tree} head={head} root={root} />}
      {outcome && !outcome.ok && (
        <div class={outcome.status === "cancelled" ? "problem still" : "problem"} role="status">
          <strong>{outcome.status}{outcome.reason !== outcome.status && `: ${outcome.reason}`}{outcome.limit ? ` (${outcome.limit})` : ""}</strong>
          {outcome.error?.message && <p>{outcome.error.message}</p>}
          {outcome.next_safe_action && <p class="next">{outcome.next_safe_action}</p>}
        </div>
      )}
      <div class="questions" aria-live="polite">
        {head.state !== "ended" && head.waiting?.map(q => <QuestionCard key={q.run + q.id} question={q} linked={false} done={() => tree.refresh()} />)}
      </div>
      {below && <TreeList tree={tree} />}
      <section class="what" aria-label="What it did">
        <Input root={root} />
        <Timeline tree={tree} view={root} top />
        {outcome?.final_output && outcome.final_output.trim() !== root.lastText() && <section class="outcome"><h2>Result</h2><Prose label="Result">{outcome.final_output}</Prose></section>}
        {decides() && head.state !== "ended" && head.kind === "Agent" && <Say tree={tree} head={head} />}
      </section>
    </main>
  );
}

/** Connected says whether what is shown is what there is. */
function Connected({ tree }: { tree: Tree }) {
  const { stands, why } = tree.connection.value;
  const loaded = tree.loaded.value;
  const texts = { connecting: "connecting…", live: "live", lost: "The connection is lost; it is tried again.", over: "" };
  const text = loaded >= 0 && stands !== "live" ? `reading, ${loaded.toLocaleString()} events so far` : texts[stands];
  return <p class={`connection ${stands}`} role="status">{text}{why && why.status > 0 ? ` ${why.message}` : ""}</p>;
}

/** Actions are the commands that the run takes as it stands. */
function Actions({ tree, head, root }: { tree: Tree; head: Head; root: RunView }) {
  if (head.state === "ended") return null;
  const send = (verb: string, body: object = {}) => post(`/v1/runs/${head.id}/${verb}`, body).then(() => tree.refresh());
  const going = (head.state === "running" || head.state === "waiting") && !head.undriven;
  return (
    <div class="acts" role="group" aria-label="Commands to the run">
      {going && !head.pausing && <Act name="Pause" act={() => send("pause")} />}
      {!going && head.state !== "queued" && !head.waiting?.length && <Act name="Resume" kind="good" act={() => send("resume")} />}
      <Act name="Cancel" kind="bad" wants="Why? (may be left out)" last="Cancel the run" act={reason => send("cancel", reason ? { reason } : {})} />
      {root.raise && (
        <Act name={`Raise ${root.raise.setting}`} wants={`New value of ${root.raise.setting}`} needed hint={root.raise.atLeast ? `at least ${root.raise.atLeast}` : ""}
          act={value => post(`/v1/runs/${root.raise!.run}/budget`, { setting: root.raise!.setting, value: Number(value) }).then(() => tree.refresh())} />
      )}
    </div>
  );
}

function Say({ tree, head }: { tree: Tree; head: Head }) {
  return (
    <div class="acts">
      <Act name={head.detail === "blocked_on_input" ? "Answer" : "Send a message"} wants="Message" last="Send" needed act={text => post(`/v1/runs/${head.id}/input`, { text }).then(() => tree.refresh())} />
    </div>
  );
}

function Input({ root }: { root: RunView }) {
  const parts: any[] = root.started?.input?.parts ?? [];
  const text = parts.filter(p => p.type === "text").map(p => p.text).join("\n\n");
  if (!text) return null;
  return <Panel open summary={<span class="name">Input</span>}>{() => <Prose label="Input">{text}</Prose>}</Panel>;
}

/** TreeList are the runs of the tree, a page at a time. */
function TreeList({ tree }: { tree: Tree }) {
  const rows = tree.rows.value;
  const depth = rows[0]?.depth ?? 1;
  return (
    <nav class="tree" aria-label="Runs of the tree">
      <h2>Runs</h2>
      <ul>{rows.map(r => <TreeRow key={r.id} run={r} depth={(r.depth ?? 1) - depth} here={r.id === tree.id} />)}</ul>
      {tree.moreRows.value && <div class="acts"><Act name="Show more runs" act={() => tree.moreOfTree()} /></div>}
    </nav>
  );
}

class TreeRow extends Component<{ run: Run; depth: number; here: boolean }> {
  override shouldComponentUpdate(next: { run: Run; here: boolean }) { return next.run !== this.props.run || next.here !== this.props.here; }

  render({ run, depth, here }: { run: Run; depth: number; here: boolean }) {
    return (
      <li class={`depth-${Math.min(depth, 8)}`}>
        <a href={`#/runs/${run.id}`} aria-current={here ? "page" : undefined}>{run.step || titleOf(run)}</a> <Standing run={run} />
      </li>
    );
  }
}

const atOnce = 60;

/** Timeline is what a run did, the newest at the end; of a long one the end alone until more is asked for. */
export function Timeline({ tree, view, top }: { tree: Tree; view: RunView; top?: boolean }) {
  view.rev.value;
  const [shown, setShown] = useState(atOnce);
  useFollow(top ?? false);
  const entries = view.entries;
  const read = tree.loaded.value < 0; // until then the last one is none that goes on
  const first = Math.max(0, entries.length - shown);
  if (entries.length === 0) {
    return <p class="empty">{view.started ? "Nothing has happened yet: the run has begun, and its first step comes." : "Reading…"}</p>;
  }
  return (
    <div class="timeline">
      {first > 0 && <button type="button" onClick={() => setShown(shown + 2 * atOnce)}>Show {Math.min(first, 2 * atOnce)} earlier of {first}</button>}
      {entries.slice(first).map((e, i, all) => <EntryPanel key={e.key} tree={tree} entry={e} rev={e.rev} last={read && i >= all.length - 2} />)}
    </div>
  );
}

/** useFollow keeps the end of the page in view for who is there. */
function useFollow(on: boolean): void {
  const atEnd = useRef(false);
  useEffect(() => {
    const look = () => { atEnd.current = innerHeight + scrollY >= document.documentElement.scrollHeight - 60 && scrollY > 0; };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, []);
  useLayoutEffect(() => { if (on && atEnd.current) scrollTo(0, document.documentElement.scrollHeight); });
}

interface EntryProps { tree: Tree; entry: Entry; rev: number; last: boolean }

/** EntryPanel is drawn again only when its entry has changed. */
class EntryPanel extends Component<EntryProps> {
  override shouldComponentUpdate(next: EntryProps) {
    return next.rev !== this.props.rev || next.entry !== this.props.entry || next.last !== this.props.last;
  }

  render({ tree, entry, last }: EntryProps) {
    switch (entry.is) {
      case "cycle": return <CyclePanel tree={tree} cycle={entry} last={last} />;
      case "child": return <ChildPanel tree={tree} child={entry} last={last} />;
      case "step": return <StepPanel step={entry} />;
      case "said": return <NoteLine note={entry.note} />;
    }
  }
}

function CyclePanel({ tree, cycle, last }: { tree: Tree; cycle: Cycle; last: boolean }) {
  const failed = cycle.calls.filter(c => c.result?.isError).length;
  const summary = (
    <>
      <span class="name">Cycle {cycle.n}</span>
      <span class="gist">{cycle.text ? firstLine(cycle.text) : cycle.calls.map(c => c.about || c.tool).join(", ")}</span>
      {cycle.calls.length > 0 && <span class={failed ? "chip bad" : "chip still"}>{cycle.calls.length === 1 ? "1 call" : `${cycle.calls.length} calls`}{failed ? `, ${failed} failed` : ""}</span>}
      {cycle.compressions.length > 0 && <span class="chip wait">compressed</span>}
      {cycle.terminator && <span class={`chip ${cycle.terminator.tone}`}>end</span>}
      {!cycle.end && (cycle.calls.some(waits) ? <span class="chip wait">waits</span> : <span class="chip busy">{cycle.answered ? "calls" : "thinks"}</span>)}
    </>
  );
  return (
    <Panel class="cycle" open={last || !cycle.end} summary={summary}>
      {() => (
        <>
          {cycle.compressions.map((n, i) => <div key={i} class="compression"><NoteLine note={n} /></div>)}
          {cycle.reasoning && <Panel class="reasoning" open={!cycle.answered} summary={<span class="name">Reasoning</span>}>{() => <Text label="Reasoning" quiet>{cycle.reasoning}</Text>}</Panel>}
          {cycle.text && <Prose label={`Text of cycle ${cycle.n}`}>{cycle.text}</Prose>}
          {cycle.calls.map(c => <CallPanel key={c.id} tree={tree} call={c} />)}
          <Notes notes={cycle.notes} />
          {cycle.terminator && <div class="terminator"><NoteLine note={cycle.terminator} /></div>}
          <p class="facts">
            {cycle.model && <span>{cycle.model}</span>}{cycle.usage && <span>{tokens(cycle.usage)}</span>}{cycle.cost && <span>{money(cycle.cost, cycle.usage)}</span>}
            {cycle.end && <span>{span(Date.parse(cycle.end) - Date.parse(cycle.at))}</span>}{cycle.finish && <span>finish: {cycle.finish}</span>}
          </p>
        </>
      )}
    </Panel>
  );
}

function waits(c: Call): boolean { return !c.result && !!c.asked && !c.decided; }

function standOf(c: Call): { text: string; tone: string } {
  if (c.result) {
    if (c.decided?.kind === "rejected") return { text: "rejected", tone: "bad" };
    if (c.refused) return { text: "denied", tone: "bad" };
    if (c.result.isError) return { text: c.result.errorType || "failed", tone: "bad" };
    return c.result.exitCode ? { text: `exit ${c.result.exitCode}`, tone: "bad" } : { text: "done", tone: "good" };
  }
  if (waits(c)) return { text: "waits for a decision", tone: "wait" };
  return c.attempt || c.child ? { text: "runs", tone: "busy" } : { text: "called", tone: "still" };
}

function CallPanel({ tree, call }: { tree: Tree; call: Call }) {
  const { text, tone } = standOf(call);
  const result = call.result;
  const summary = <><code class="name">{call.tool}</code><span class="gist">{call.about}</span><span class={`chip ${tone}`}>{text}</span></>;
  return (
    <Panel class="call" open={tone !== "good"} summary={summary}>
      {() => (
        <>
          <Text label={`Arguments of ${call.tool}`} quiet>{pretty(call.args)}</Text>
          {call.editedBy && <NoteLine note={{ text: `arguments edited by ${call.editedBy}` }} />}
          {call.asked && <NoteLine note={{ text: `asked: ${call.asked}` }} />}
          {call.decided && <NoteLine note={{ text: `${call.decided.kind}${call.decided.approver ? ` by ${call.decided.approver}` : ""}`, ...(call.decided.reason ? { detail: call.decided.reason } : {}) }} />}
          {call.refused && <NoteLine note={{ text: `denied: ${call.refused}`, tone: "bad" }} />}
          {call.child && <ChildBody tree={tree} run={call.child} />}
          {result && <Text label={`Result of ${call.tool}`}>{result.output || "(no output)"}</Text>}
          {result && <p class="facts">{result.exitCode !== undefined && <span>exit {result.exitCode}</span>}{result.durationMs !== undefined && <span>{span(result.durationMs)}</span>}{result.truncated && <span>the middle is left out</span>}</p>}
        </>
      )}
    </Panel>
  );
}

/** ChildPanel is a run of the tree: an iteration, a step, or a run that an agent has started. */
function ChildPanel({ tree, child, last }: { tree: Tree; child: Child; last: boolean }) {
  const o = child.outcome;
  const it = child.iteration;
  const tone = o ? (o.ok ? "good" : o.status === "cancelled" ? "still" : "bad") : child.parked ? "wait" : "busy";
  const stand = o ? child.status && child.status !== o.status ? child.status : o.status : child.parked ? "waits" : "running";
  // A pass that has not ended has its number in the id of its step alone.
  const pass = /\.(\d+)$/.exec(child.step ?? "");
  const summary = (
    <>
      <span class="name">{it?.max ? `Iteration ${it.n} of ${it.max}` : pass ? `Iteration ${Number(pass[1]) + 1}` : child.step || child.name || child.kind}</span>
      <span class="gist">{child.learning ? firstLine(child.learning) : it?.item !== undefined ? pretty(it.item) : it || child.step ? child.name : child.kind}</span>
      <span class={`chip ${tone}`}>{stand}</span>
    </>
  );
  return (
    <Panel class="child" open={last && !o} summary={summary}>
      {() => (
        <>
          <ChildBody tree={tree} run={child.run} />
          {child.learning && <NoteLine note={{ text: "learnt", detail: child.learning }} />}
          {child.error?.message && <NoteLine note={{ text: child.error.message, tone: "bad" }} />}
          <Notes notes={child.notes} />
        </>
      )}
    </Panel>
  );
}

function ChildBody({ tree, run }: { tree: Tree; run: string }) {
  const [view, setView] = useState<RunView | null>(null);
  useEffect(() => setView(tree.view(run)), [run]); // it is loaded when it is shown
  return (
    <>
      <p class="facts"><a href={`#/runs/${run}`}>Run {run}</a></p>
      {view && <Timeline tree={tree} view={view} />}
    </>
  );
}

function StepPanel({ step }: { step: Step }) {
  const tones: { [status: string]: string } = { completed: "good", failed: "bad", skipped: "still", cancelled: "still" };
  const summary = (
    <>
      <span class="name">{step.step}</span>
      <span class="gist">{step.argv?.join(" ") ?? (step.content ? firstLine(step.content) : "")}</span>
      <span class={`chip ${step.status ? tones[step.status] ?? "still" : "busy"}`}>{step.status ?? "running"}</span>
    </>
  );
  return (
    <Panel class="step" open={step.status === "failed"} summary={summary}>
      {() => (
        <>
          {step.argv && <Text label="Command" quiet>{step.argv.join(" ")}</Text>}
          {step.error?.message && <NoteLine note={{ text: step.error.message, tone: "bad" }} />}
          {(step.output ?? step.content) && <Text label={`Output of ${step.step}`}>{step.output ?? step.content ?? ""}</Text>}
          {step.exitCode !== undefined && <p class="facts"><span>exit {step.exitCode}</span></p>}
          <Notes notes={step.notes} />
        </>
      )}
    </Panel>
  );
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0]!.slice(0, 160);
}
