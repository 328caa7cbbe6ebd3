import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";
import { follow } from "./feed";
import { titleOf } from "./format";
import { lazily } from "./lazy";
import { ProblemBox, Standing } from "./parts";
import type { Run, Shown } from "./types";
import { titled } from "./waiting";

/** ViewProps is what a view of a run gets: the run, and what follows the name of the view in the address. */
export interface ViewProps { run: Shown; rest: string }

interface Tab { at: string; title: string; View: ComponentType<ViewProps> }

/** tabs are the views of a run besides what it did. */
const tabs: Tab[] = [
  { at: "plan", title: "Plan", View: lazily(async () => (await import("./plan")).default) },
  { at: "timeline", title: "Timeline", View: lazily(async () => (await import("./timeline")).default) },
  { at: "requests", title: "Requests", View: lazily(async () => (await import("./request")).default) },
  { at: "compare", title: "Compare", View: lazily(async () => (await import("./compare")).default) },
  { at: "spend", title: "Spend", View: lazily(async () => (await import("./spend")).default) },
  { at: "events", title: "Events", View: lazily(async () => (await import("./events")).default) },
];

/** Tabs links the views of a run. */
export function Tabs({ run, at }: { run: string; at: string }) {
  return (
    <nav class="tabs" aria-label="Views of the run">
      {[{ at: "", title: "What it did" }, ...tabs].map(t => (
        <a key={t.at} href={`#/runs/${run}${t.at && `/${t.at}`}`} aria-current={t.at === at ? "page" : undefined}>{t.title}</a>
      ))}
    </nav>
  );
}

/** TabPage shows one view of a run. */
export function TabPage({ id, at, rest }: { id: string; at: string; rest: string }) {
  const [run, setRun] = useState<Shown | null>(null);
  const [row, setRow] = useState<Run | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => follow({ run: changed => { if (changed.id === id) setRow(changed); } }), [id]);
  const tab = tabs.find(t => t.at === at);
  useEffect(() => {
    const gone = new AbortController();
    setProblem(null);
    get<Shown>(`/v1/runs/${id}`, gone.signal).then(setRun, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [id, at]);
  useEffect(() => { if (run && tab) titled(`${tab.title} of ${titleOf(run)} · Pawl`); }, [run, tab]);
  return (
    <main id="main" tabIndex={-1} class="run">
      <header class="head">
        <div>
          <h1>{run ? <>{titleOf(run)} <Standing run={row && row.seq > run.seq ? row : run} /></> : `Run ${id}`}</h1>
          <p class="facts"><span><code>{id}</code></span></p>
        </div>
      </header>
      <Tabs run={id} at={at} />
      {problem ? <ProblemBox problem={problem} />
        : !tab ? <p class="empty">A run has no view of this name.</p>
          : run ? <tab.View run={run} rest={rest} /> : <p class="empty">Reading…</p>}
    </main>
  );
}
