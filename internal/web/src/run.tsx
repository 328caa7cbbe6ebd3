import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { follow } from "./feed";
import { Forks } from "./forks";
import { useKey } from "./keys";
import { decidedHere, questions, titled } from "./waiting";
import { asProblem, decides, get, post, Problem } from "./api";
import { money, span, titleOf, tokens, useOf, visible } from "./format";
import { Act, Ago, Panel, Parts, ProblemBox, Prose, Ring, Standing, Text } from "./parts";
import { Closed, QuestionCard, Raise } from "./questions";
import { lazily } from "./lazy";
import { Tabs } from "./tabs";
import { type Head, Tree } from "./tree";
import type { Body, Entries, Entry, Run, Use } from "./types";
import type { RunView } from "./view";

const Changes = lazily(() => import("./changes").then(m => m.Changes));
const Iterations = lazily(() => import("./refine").then(m => m.Iterations));

/** Left is the state in which the user left the page of a run. */
interface Left { opened: Map<string, boolean>; scroll: number }

const left = new Map<string, Left>();

/** RunPage shows one run with all its descendants. entry is the entry to scroll to, if any. */
export function RunPage({ id, entry }: { id: string; entry: string }) {
  const tree = useMemo(() => new Tree(id), [id]);
  const loaded = useRef(false);
  useEffect(() => {
    const view = tree.view(id);
    const was = left.get(id);
    const gone = new AbortController();
    const now: Left = { opened: view.opened, scroll: was?.scroll ?? 0 };
    was?.opened.forEach((open, at) => view.opened.set(at, open));
    left.set(id, now);
    const look = () => { if (loaded.current && location.hash.includes(id)) now.scroll = scrollY; }; // another place begins at its top
    addEventListener("scroll", look, { passive: true, signal: gone.signal });
    void tree.ready.then(() => {
      if (gone.signal.aborted) return;
      if (was?.scroll && !entry) settleAt(() => scrollTo(0, was.scroll), gone.signal);
      loaded.current = true;
    });
    void tree.start();
    const stop = follow({ removed: run => {
      if (run !== id) return;
      tree.close();
      tree.problem.value = new Problem(404, "The run was removed", `run ${id} was removed from the journal`, "go back to the list of runs");
    } });
    return () => {
      stop();
      gone.abort();
      tree.close();
    };
  }, [tree]);
  useEffect(() => {
    const gone = new AbortController();
    if (entry) {
      void tree.ready.then(() => tree.view(id).reveal(entry, gone.signal)).then(
        at => settleAt(() => document.getElementById(`e${at}`)?.scrollIntoView({ block: "start" }), gone.signal),
        () => { /* the run has no such entry, and its page is shown */ });
    }
    return () => gone.abort();
  }, [tree, entry]);
  const head = tree.head.value;
  useEffect(() => { if (head) titled(`${titleOf(head)} · Pawl`); }, [head?.name]);
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
  const closed = questions.value?.filter(w => w.became !== undefined && w.question.path.includes(tree.id)) ?? [];
  const usage = outcome?.usage ?? head.usage;
  const below = tree.rows.value.length > 1 || tree.moreRows.value !== "";
  const jump = (only: string) => () => void root.next(only).then(next => { if (next) location.hash = `#/runs/${tree.id}/e/${next}`; }, () => { /* pressed again, it is asked again */ });
  useKey("n", "the next failure", jump("failed"));
  useKey("q", "the next question", jump("asked"));
  useKey("w", "the next call that writes files", jump("edited"));
  return (
    <main id="main" tabIndex={-1} class={below ? "run with-tree" : "run"}>
      <header class="head">
        {passes && <Ring passes={passes} />}
        <div>
          {head.parent && <p class="crumbs"><a href={`#/runs/${head.root}`}>the whole tree</a> › <a href={`#/runs/${head.parent}`}>the parent run</a></p>}
          <h1>{titleOf(head)} <Standing run={head} /></h1>
          <p class="facts">
            <span>{head.kind}</span><span><code>{head.id}</code></span>
            <span>{money(outcome?.cost ?? head.cost, usage)}</span><span>{tokens(usage)}</span>
            {head.state === "ended" && <span>took {span(Date.parse(head.updated) - Date.parse(head.created))}</span>}
            <span>began <Ago time={head.created} /></span>
            {decides() && !head.parent && head.name && <a class="anchor" href={`#/start?${new URLSearchParams({ file: head.name, like: head.id })}`}>Start again like this</a>}
          </p>
        </div>
        <Connected tree={tree} />
      </header>
      <Tabs run={head.id} at="" />
      <Limits uses={head.limits ?? []} />
      {decides() && <Actions tree={tree} head={head} root={root} />}
      {outcome && !outcome.ok && (
        <div class={outcome.status === "cancelled" ? "problem still" : "problem"} role="status">
          <strong>{outcome.status}{outcome.reason !== outcome.status && `: ${outcome.reason}`}{outcome.limit ? ` (${outcome.limit})` : ""}</strong>
          {outcome.error?.message && <p>{visible(outcome.error.message)}</p>}
          {outcome.next_safe_action && <p class="next">{visible(outcome.next_safe_action)}</p>}
        </div>
      )}
      <div class="questions" aria-live="polite">
        {closed.map(w => <Closed key={w.question.run + w.question.id} question={w.question} became={w.became!} />)}
        {head.state !== "ended" && head.waiting?.filter(q => !closed.some(w => w.question.run === q.run && w.question.id === q.id && w.question.seq === q.seq))
          .map(q => <QuestionCard key={q.run + q.id} question={q} linked={false} done={() => { decidedHere(q); tree.refresh(); }} />)}
      </div>
      <Forks run={tree.id} />
      {below && <TreeList tree={tree} />}
      <section class="what" aria-label="What it did">
        <div class="acts" role="group" aria-label="All entries">
          <button type="button" onClick={() => root.chooseAll(true)}>Expand all</button>
          <button type="button" onClick={() => root.chooseAll(false)}>Collapse all</button>
          <Find run={tree.id} at={root.target} />
        </div>
        {head.kind !== "Agent" && <Part name="Iterations side by side">{() => <Iterations run={tree.id} seq={root.top().findLast(e => e.kind === "iteration")?.seq ?? 0} />}</Part>}
        <Part name="Files changed">{() => <Changes run={tree.id} key={head.seq} />}</Part>
        <Timeline tree={tree} view={root} parent="" top />
        {outcome?.final_output && outcome.ok && head.kind !== "Agent" && <section class="outcome"><h2>Result</h2><Prose label="Result">{outcome.final_output}</Prose></section>}
        {decides() && head.state !== "ended" && head.kind === "Agent" && !root.limit && <Say tree={tree} head={head} />}
        {decides() && head.state === "ended" && head.kind === "Agent" && <Continue run={head.id} />}
      </section>
    </main>
  );
}

/** Part is a panel whose content is loaded when the user opens it. */
function Part({ name, children }: { name: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return <Panel class="part" open={open} choose={setOpen} summary={<span class="name">{name}</span>}>{children}</Panel>;
}

/** Connected shows whether the page is up to date. */
function Connected({ tree }: { tree: Tree }) {
  const { stands, why } = tree.connection.value;
  const texts = { connecting: "connecting…", live: "live", lost: "Connection lost; reconnecting.", over: "" };
  return <p class={`connection ${stands}`} role="status">{texts[stands]}{why && why.status > 0 ? ` ${why.message}` : ""}</p>;
}

/** Find goes to the next entry whose events contain a text. The server searches all events of the run. */
function Find({ run, at }: { run: string; at: string }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ text: string; ids: string[] } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const next = async () => {
    if (!text) return setFound(null);
    try {
      const ids = found?.text === text ? found.ids : (await get<Entries>(`/v1/runs/${run}/view?limit=500&find=${encodeURIComponent(text)}`)).items.map(e => e.id);
      setFound({ text, ids });
      setProblem(null);
      const id = ids.find(id => Number(id) > Number(at || -1)) ?? ids[0];
      if (id) location.hash = `#/runs/${run}/e/${id}`;
    } catch (err) {
      setProblem(asProblem(err));
    }
  };
  return (
    <form class="find" role="search" onSubmit={e => { e.preventDefault(); void next(); }}>
      <input type="search" aria-label="Find in this run" placeholder="Find in this run" value={text} onInput={e => setText(e.currentTarget.value)} />
      <button type="submit">Find next</button>
      <span role="status">{found && found.text === text && (found.ids.length === 0 ? "Not found" : `${found.ids.indexOf(at) + 1 || 1} of ${found.ids.length}`)}</span>
      {problem && <ProblemBox problem={problem} />}
    </form>
  );
}

/** Limits shows the use of each limit as a bar. */
function Limits({ uses }: { uses: Use[] }) {
  const used = uses.filter(u => u.used > 0);
  if (used.length === 0) return null;
  return (
    <ul class="limits" aria-label="Limits">
      {used.map(u => (
        <li key={u.setting} title={u.setting}>
          <span>{useOf(u)}</span>
          <meter min={0} max={u.limit} high={0.8 * u.limit} value={Math.min(u.used, u.limit)} aria-label={u.setting}>{useOf(u)}</meter>
        </li>
      ))}
    </ul>
  );
}

/** Actions shows the commands that the run accepts in its state. */
function Actions({ tree, head, root }: { tree: Tree; head: Head; root: RunView }) {
  if (head.state === "ended") return null;
  const send = (verb: string, body: object = {}) => post(`/v1/runs/${head.id}/${verb}`, body).then(() => tree.refresh());
  const going = (head.state === "running" || head.state === "waiting") && !head.undriven;
  return (
    <div class="acts" role="group" aria-label="Commands to the run">
      {going && !head.pausing && <Act name="Pause" act={() => send("pause")} />}
      {!going && (head.state !== "queued" || head.forkOf) && !head.waiting?.length && !root.limit && <Act name="Resume" kind="good" act={() => send("resume")} />}
      <Act name="Cancel" kind="bad" wants="Why? (may be left out)" last="Cancel the run" act={reason => send("cancel", reason ? { reason } : {})} />
      {root.limit && <Raise limit={root.limit} done={() => tree.refresh()} />}
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

/** Continue starts a run that has the conversation of an ended one. */
function Continue({ run }: { run: string }) {
  return (
    <div class="acts">
      <Act name="Continue with a message" wants="Message" last="Continue" needed act={text => post<Run>(`/v1/runs/${run}/continue`, { text }).then(next => { location.hash = `#/runs/${next.id}`; })} />
    </div>
  );
}

/** TreeList shows the runs of the tree, a page at a time. */
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
const mostOpened = 8;

/**
 * Timeline shows what a run did, the newest at the end; of a long run only the end until the user asks
 * for more.
 */
export function Timeline({ tree, view, parent, top }: { tree: Tree; view: RunView; parent: string; top?: boolean }) {
  view.rev.value;
  const [shown, setShown] = useState(atOnce);
  useEffect(() => view.open(parent), [view, parent]);
  const list = view.below(parent);
  const fresh = useFollow(top ?? false, list.items);
  if (list.problem) return <ProblemBox problem={list.problem} />;
  if (!list.loaded) return <p class="empty">Reading…</p>;
  const revealed = list.items.findIndex(id => view.revealed.has(id));
  const first = Math.min(Math.max(0, list.items.length - shown), revealed < 0 ? Infinity : revealed);
  const earlier = list.earlier + first;
  const last = list.items.findLast(id => view.entries.get(id)!.kind !== "note");
  const crowded = list.items.slice(first).filter(id => endedBadly(view.entries.get(id)!)).length > mostOpened;
  const more = () => {
    setShown(shown + atOnce);
    if (first < atOnce && list.before) void view.more(parent).catch(() => { /* it is asked for again */ });
  };
  return (
    <div class="timeline">
      {earlier > 0 && <button type="button" onClick={more}>Show {Math.min(earlier, atOnce)} earlier of {earlier}</button>}
      {list.items.slice(first).map(id => {
        const e = view.entries.get(id)!;
        return <EntryPanel key={id} tree={tree} view={view} entry={e} choice={view.opened.get(id) ?? (crowded && endedBadly(e) ? false : undefined)} target={view.target === id} live={view.live(e)} last={id === last} />;
      })}
      {fresh > 0 && <button type="button" class="fresh" onClick={() => scrollTo(0, document.documentElement.scrollHeight)}>{fresh} new</button>}
    </div>
  );
}

/**
 * useFollow keeps the end of the page in view for a user who is there. It returns how many items
 * arrived since the end was last in view.
 */
function useFollow(on: boolean, items: string[]): number {
  const atEnd = useRef(false);
  const [seen, setSeen] = useState("");
  const last = items[items.length - 1] ?? "";
  useEffect(() => {
    if (!on) return;
    const look = () => {
      atEnd.current = endInView() && scrollY > 0;
      if (endInView()) setSeen(items[items.length - 1] ?? "");
    };
    addEventListener("scroll", look, { passive: true });
    return () => removeEventListener("scroll", look);
  }, [on, items]);
  useLayoutEffect(() => {
    if (!on) return;
    if (atEnd.current) scrollTo(0, document.documentElement.scrollHeight);
    if (last && (!seen || endInView())) setSeen(last);
  });
  return on && seen ? items.length - 1 - items.indexOf(seen) : 0;
}

function endInView(): boolean { return innerHeight + scrollY >= document.documentElement.scrollHeight - 60; }

const settles = 5000;

/** settleAt scrolls to a place repeatedly while the content above it is loading, until the user scrolls. */
function settleAt(scroll: () => void, gone: AbortSignal): void {
  const done = new AbortController();
  const stop = () => {
    done.abort();
    grows.disconnect();
  };
  const grows = new ResizeObserver(() => requestAnimationFrame(() => { if (!done.signal.aborted) scroll(); }));
  for (const by of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(by, stop, { signal: done.signal, passive: true });
  gone.addEventListener("abort", stop);
  setTimeout(stop, settles);
  grows.observe(document.body);
  requestAnimationFrame(scroll);
}

interface EntryProps { tree: Tree; view: RunView; entry: Entry; choice: boolean | undefined; target: boolean; live: string; last: boolean }

const tones: { [state: string]: string } = {
  running: "busy", waiting: "wait", done: "good", failed: "bad", denied: "bad", rejected: "bad", skipped: "still", cancelled: "still",
};

/** endedBadly reports whether an entry is a call that ended without a result. */
function endedBadly(e: Entry): boolean { return e.kind === "call" && ["failed", "denied", "rejected"].includes(e.state ?? ""); }

/** opens reports whether an entry is open by default. */
function opens(e: Entry, last: boolean): boolean {
  switch (e.kind) {
    case "note": return e.id === "1" || e.state === "failed";
    case "question": return false;
    case "call": return e.state !== "done";
  }
  return e.state === "running" || e.state === "waiting" || e.state === "failed" && e.kind === "step" || last && e.kind === "cycle";
}

/** EntryPanel is redrawn only when its entry has changed. */
class EntryPanel extends Component<EntryProps> {
  override shouldComponentUpdate(next: EntryProps) {
    const was = this.props;
    return next.entry !== was.entry || next.last !== was.last || next.live !== was.live || next.choice !== was.choice || next.target !== was.target;
  }

  render({ tree, view, entry: e, choice, target, live, last }: EntryProps) {
    const own = view.id === tree.id;
    const failed = e.failures ? `, ${e.failures} failed` : "";
    const summary = (
      <>
        <span class="name">{visible(e.name ?? "")}</span>
        <span class="gist">{visible(e.kind === "call" ? live : e.line ?? "")}</span>
        {e.below && e.kind === "cycle" ? <span class={failed ? "chip bad" : "chip still"}>{e.below}{failed}</span> : null}
        {e.state && <span class={`chip ${tones[e.state]}`}>{e.state}</span>}
      </>
    );
    return (
      <Panel id={own ? `e${e.id}` : undefined} class={target ? `${e.kind} target` : e.kind} open={choice ?? opens(e, last)} choose={open => view.choose(e.id, open)} summary={summary}>
        {() => (
          <>
            {e.kind === "cycle" && e.state === "running" && <Live view={view} />}
            <EntryBody view={view} entry={e} />
            {e.below ? <Timeline tree={tree} view={view} parent={e.id} /> : null}
            {e.run && <RunBelow tree={tree} run={e.run} />}
            <p class="facts">
              {e.cost && <><span>{tokens(e.usage)}</span><span>{money(e.cost, e.usage)}</span></>}
              {e.seconds !== undefined && <span>{span(1000 * e.seconds)}</span>}
              {own && <a class="anchor" href={`#/runs/${view.id}/e/${e.id}`}>address of this entry</a>}
              {own && ["cycle", "call", "child"].includes(e.kind) && <a class="anchor" href={`#/runs/${view.id}/timeline/${e.id}`}>in the timeline</a>}
              {decides() && e.kind !== "question" && <a class="anchor" href={`#/runs/${view.id}/fork/${e.id}`}>fork here</a>}
            </p>
          </>
        )}
      </Panel>
    );
  }
}

/** Live shows the partial answer. */
function Live({ view }: { view: RunView }) {
  return (
    <>
      {view.thought && <Text label="Reasoning" quiet>{view.thought}</Text>}
      {view.said && <Prose label="The answer so far">{view.said}</Prose>}
    </>
  );
}

/** EntryBody shows the body of an entry; it is loaded when it is shown, and when its entry has changed. */
function EntryBody({ view, entry }: { view: RunView; entry: Entry }) {
  const [body, setBody] = useState<Body | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    view.body(entry.id, gone.signal).then(setBody, () => { /* the next change reads it again */ });
    return () => gone.abort();
  }, [view, entry.id, entry.seq]);
  return body && <Parts parts={body.parts.filter(p => p.text || p.line !== entry.name)} about={entry.name ?? ""} />;
}

function RunBelow({ tree, run }: { tree: Tree; run: string }) {
  return (
    <>
      <p class="facts"><a href={`#/runs/${run}`}>Run {run}</a></p>
      <Part name="Files changed">{() => <Changes run={run} />}</Part>
      <Timeline tree={tree} view={tree.view(run)} parent="" />
    </>
  );
}
