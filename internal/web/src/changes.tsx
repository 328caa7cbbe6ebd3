import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";
import { visible } from "./format";
import { Panel, ProblemBox } from "./parts";

/** Write is a call that wrote a file, or was to write it. */
interface Write { run: string; seq: number; callId: string; name: string; state: string; why?: string; diff?: string; whole?: boolean; cut?: boolean }

interface ChangedFile { path: string; calls: Write[] }

interface FileChanges { items: ChangedFile[]; more?: number }

const several = (n: number, what: string) => n === 1 ? `1 ${what}` : `${n} ${what}s`;

/** Changes lists the files that a run and the runs below it changed, with the calls that wrote them and their diffs. */
export function Changes({ run, open }: { run: string; open?: boolean }) {
  const [changes, setChanges] = useState<FileChanges | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    get<FileChanges>(`/v1/runs/${run}/changes`, gone.signal).then(setChanges, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [run]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!changes) return <p class="empty">Reading the changes…</p>;
  if (changes.items.length === 0) return <p class="why">No call named a file to write.</p>;
  return (
    <div role="group" aria-label={`Files that run ${run} changed`} class="changes">
      {changes.items.map(f => <FileChange key={f.path} file={f} first={open ?? changes.items.length < 6} />)}
      {changes.more ? <p>{several(changes.more, "more file")}</p> : null}
    </div>
  );
}

function FileChange({ file, first }: { file: ChangedFile; first: boolean }) {
  const [open, setOpen] = useState(first);
  const refused = file.calls.filter(c => c.state === "denied" || c.state === "rejected").length;
  const done = file.calls.filter(c => c.state === "done").length;
  const summary = (
    <>
      <span class="name"><code>{visible(file.path)}</code></span>
      <span class="gist">{done > 0 ? `written by ${several(done, "call")}` : "not written"}</span>
      {refused > 0 && <span class="chip bad">{several(refused, "refused write")}</span>}
    </>
  );
  return <Panel open={open} choose={setOpen} summary={summary}>{() => file.calls.map(c => <Written key={c.callId} call={c} />)}</Panel>;
}

const firstLines = 40;

function Written({ call: c }: { call: Write }) {
  const [whole, setWhole] = useState(false);
  const lines = (c.diff ?? "").replace(/\n$/, "").split("\n").filter(line => !line.startsWith("\\"));
  const shown = whole ? lines : lines.slice(0, firstLines);
  return (
    <div class="written">
      <p class="facts">
        <a href={`#/runs/${c.run}/e/${c.seq}`}>{visible(c.name)}</a>
        {c.state !== "done" && <span class="chip bad">{c.state}</span>}
        {c.why && <span>{visible(c.why)}</span>}
        {c.whole && <span>the whole file; no event has its content before</span>}
        {!c.diff && <span>what it wrote is in no event</span>}
      </p>
      {c.diff && (
        <pre class="text">{shown.map((line, i) => <span key={i} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : undefined}>{visible(line)}{"\n"}</span>)}</pre>
      )}
      {shown.length < lines.length && <button type="button" onClick={() => setWhole(true)}>Show {several(lines.length - shown.length, "more line")}</button>}
      {whole && c.cut && <p class="why">The rest is left out.</p>}
    </div>
  );
}
