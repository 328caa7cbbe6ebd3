import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";
import { visible } from "./format";
import { ProblemBox } from "./parts";

/** Effect is something that a call or a command did, which a fork before it does not undo. */
export interface Effect { run: string; seq: number; kind: "command" | "files" | "sent" | "call"; name: string; step?: string; files?: string[]; hosts?: string[]; state: string }

/** EffectsLeft is what a fork does not undo; seq is the last event that it shares. */
export interface EffectsLeft { seq: number; requested: number; items: Effect[]; earlier?: number }

const kinds: { [kind: string]: string } = { command: "command", files: "files", sent: "sent", call: "call" };

/** EffectsAfter lists what stays done although a run is forked at an event. */
export function EffectsAfter({ run, seq }: { run: string; seq: number }) {
  const [left, setLeft] = useState<EffectsLeft | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    setProblem(null);
    get<EffectsLeft>(`/v1/runs/${run}/effects?seq=${seq}`, gone.signal).then(setLeft, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [run, seq]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!left) return <p class="empty">Reading what stays done…</p>;
  return (
    <section aria-label="What stays done">
      <h2>What stays done</h2>
      <p>The fork shares the events up to {left.seq}{left.seq !== left.requested && `: at event ${left.requested} a call is open, or the run has ended`}. Files are not rewound.</p>
      {left.items.length === 0
        ? <p>After event {left.seq} no file was written, no command ran and nothing was sent.</p>
        : <p>After it, this was done and is not undone:</p>}
      {left.earlier ? <p>{left.earlier} earlier ones are not listed.</p> : null}
      <ul class="effects">
        {left.items.map(e => (
          <li key={`${e.run} ${e.seq}`}>
            <span class="chip still">{kinds[e.kind] ?? e.kind}</span>{" "}
            <a href={`#/runs/${e.run}/e/${e.seq}`}><code>{visible(e.name)}</code></a>
            {e.state !== "done" && <> <span class="chip bad">{e.state === "failed" ? "failed" : "perhaps done"}</span></>}
            {e.files && <span class="facts">writes {visible(e.files.join(", "))}</span>}
            {e.hosts && <span class="facts">reaches {visible(e.hosts.join(", "))}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
