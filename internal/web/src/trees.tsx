import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";
import { visible } from "./format";
import { ProblemBox } from "./parts";

interface Diff { patch: string; cut?: boolean; missing?: string }

const firstLines = 60;

/** toneOf returns the class of a line of a diff. */
const toneOf = (line: string) => line.startsWith("diff ") ? "file" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : undefined;

/**
 * TreeDiff shows how the files of a loop's workspace differ between two of its trees, as git does. also
 * returns what is below it, by whether the trees could be compared.
 */
export function TreeDiff({ run, from, to, label, also }: { run: string; from: string; to: string; label: string; also?: (compared: boolean) => ComponentChildren }) {
  const [diff, setDiff] = useState<Diff | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [whole, setWhole] = useState(false);
  useEffect(() => {
    const gone = new AbortController();
    setDiff(null);
    get<Diff>(`/v1/runs/${run}/trees?from=${from}&to=${to}`, gone.signal).then(setDiff, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [run, from, to]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!diff) return <p class="empty">Comparing the files…</p>;
  if (diff.missing) return <><p class="why">The trees of the files cannot be compared: {diff.missing}</p>{also?.(false)}</>;
  if (!diff.patch) return <><p class="why">No file differs.</p>{also?.(true)}</>;
  const lines = diff.patch.split("\n");
  const shown = whole ? lines : lines.slice(0, firstLines);
  return (
    <>
      <div role="group" aria-label={label}>
        <pre class="text">{shown.map((line, i) => <span key={i} class={toneOf(line)}>{visible(line)}{"\n"}</span>)}</pre>
        {shown.length < lines.length && <button type="button" onClick={() => setWhole(true)}>Show {lines.length - shown.length} more lines</button>}
        {whole && diff.cut && <p class="why">The rest is left out.</p>}
      </div>
      {also?.(true)}
    </>
  );
}
