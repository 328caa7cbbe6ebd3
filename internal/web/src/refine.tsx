import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";
import { Changes } from "./changes";
import { pretty, visible } from "./format";
import { ProblemBox, Prose, Text } from "./parts";
import { TreeDiff } from "./trees";

interface Judged { by: string; said: string; holds?: boolean; run?: string }

interface Checkpoint { label: string; verdict?: string; child?: string; plan?: unknown; questions?: { question: string; answer: string }[] }

export interface Pass {
  step?: string; iteration: number; maxIterations?: number; run?: string; exit?: string; output: string; cut?: boolean; tree?: string;
  judged: Judged[]; learning?: string; patterns?: string; checkpoints?: Checkpoint[];
}

export interface Passes { objective?: string; items: Pass[] }

/** nameOf returns the name of an iteration, with its loop if the run has several. */
const nameOf = (p: Pass, all: Pass[]) => `${all.some(other => other.step !== p.step) ? `${p.step}, ` : ""}iteration ${p.iteration}`;

/** treeBefore returns the tree of the files before an iteration. */
export function treeBefore(p: Pass, all: Pass[]): string { return all.findLast(other => other.step === p.step && other.iteration < p.iteration && other.tree)?.tree ?? "start"; }

/** Iterations shows two iterations of a run's loops side by side, and how their answers differ. */
export function Iterations({ run, seq }: { run: string; seq: number }) {
  const [passes, setPasses] = useState<Passes | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [chosen, setChosen] = useState<[number, number] | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    get<Passes>(`/v1/runs/${run}/iterations`, gone.signal).then(setPasses, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [run, seq]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!passes) return <p class="empty">Reading the iterations…</p>;
  const all = passes.items;
  if (all.length === 0) return <p class="why">No iteration has begun.</p>;
  const [left, right] = chosen ?? [Math.max(all.length - 2, 0), all.length - 1];
  const choose = (side: 0 | 1, label: string) => (
    <label class="filter">
      <span>{label}</span>
      <select value={String(side === 0 ? left : right)} onChange={e => { const n = Number(e.currentTarget.value); setChosen(side === 0 ? [n, right] : [left, n]); }}>
        {all.map((p, i) => <option key={i} value={String(i)}>{nameOf(p, all)}</option>)}
      </select>
    </label>
  );
  const one = all[left]!;
  const other = all[right]!;
  return (
    <section aria-label="Iterations side by side">
      {passes.objective && <><h3>Objective</h3><Prose label="Objective">{passes.objective}</Prose></>}
      <div class="filters">{choose(0, "Left")}{choose(1, "Right")}</div>
      <div class="sides">
        <PassShown loop={run} pass={one} before={treeBefore(one, all)} name={nameOf(one, all)} />
        {left !== right && <PassShown loop={run} pass={other} before={treeBefore(other, all)} name={nameOf(other, all)} />}
      </div>
      {left !== right && one.tree && other.tree && (
        <section aria-label="How the files differ">
          <h3>How the files differ</h3>
          <TreeDiff run={run} from={one.tree} to={other.tree} label="Files of both" />
        </section>
      )}
      {left !== right && <AnswerDiff before={one.output} after={other.output} />}
    </section>
  );
}

function PassShown({ loop, pass: p, before, name }: { loop: string; pass: Pass; before: string; name: string }) {
  return (
    <article aria-label={name}>
      <h3>{name}{p.maxIterations ? ` of ${p.maxIterations}` : ""}</h3>
      <p class="facts">{p.exit && <span>{p.exit}</span>}{p.run && <a href={`#/runs/${p.run}`}>run {p.run}</a>}{p.tree && <span>tree <code>{p.tree.slice(-10)}</code></span>}</p>
      <h4>Files</h4>
      {p.tree && <TreeDiff run={loop} from={before} to={p.tree} label={`Files of ${name}`} />}
      {p.run && <Changes run={p.run} open={false} />}
      <h4>Answer</h4>
      {p.output ? <Text label={`Answer of ${name}`}>{p.output}</Text> : <p class="why">There is none yet.</p>}
      {p.cut && <p class="why">The rest is left out.</p>}
      <h4>Verdicts</h4>
      {p.judged.length === 0 ? <p class="why">Nothing has judged it.</p> : (
        <ul class="judged">
          {p.judged.map((j, i) => (
            <li key={i}>
              <span class={`chip ${j.holds === undefined ? "still" : j.holds ? "good" : "bad"}`}>{j.by}{j.holds === undefined ? "" : j.holds ? ": holds" : ": does not hold"}</span>{" "}
              {visible(j.said)} {j.run && <a href={`#/runs/${j.run}`}>its run</a>}
            </li>
          ))}
        </ul>
      )}
      {p.learning && <><h4>Log</h4><Prose label="Log">{p.learning}</Prose></>}
      {p.patterns && <><h4>Patterns</h4><Prose label="Patterns">{p.patterns}</Prose></>}
      {p.checkpoints?.map((c, i) => (
        <div key={i}>
          <h4>Checkpoint {visible(c.label)}</h4>
          {c.verdict && <p><span class="chip still">{c.verdict}</span></p>}
          {c.questions?.map(q => <p key={q.question}>{visible(q.question)} <strong>{visible(q.answer)}</strong></p>)}
          {c.plan !== undefined && <Text label="Plan">{pretty(c.plan)}</Text>}
        </div>
      ))}
    </article>
  );
}

function AnswerDiff({ before, after }: { before: string; after: string }) {
  if (before === after) return <p>Both answers are the same.</p>;
  return (
    <section aria-label="How the answers differ">
      <h3>How the answers differ</h3>
      <pre class="text">{diffOf(before.split("\n"), after.split("\n")).map(([mark, line], i) => <span key={i} class={mark === "+" ? "added" : mark === "-" ? "removed" : undefined}>{mark} {visible(line)}{"\n"}</span>)}</pre>
    </section>
  );
}

const mostLines = 1500;

/** diffOf returns the lines of two texts, each with a mark: removed, added, or in both. */
export function diffOf(before: string[], after: string[]): [string, string][] {
  const a = before.slice(0, mostLines);
  const b = after.slice(0, mostLines);
  // common[i][j] is the length of the longest common part of the lines from i and from j on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  }
  const lines: [string, string][] = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push([" ", a[i]!]);
      i++;
      j++;
    } else if (j >= b.length || i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!) lines.push(["-", a[i++]!]);
    else lines.push(["+", b[j++]!]);
  }
  return lines;
}
