import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Problem, asProblem, away } from "./api";
import type { Part, Run } from "./types";
import type { Passes } from "./view";
import { ago, standing, until, visible } from "./format";

/** ProblemBox shows the server's description of a failure and what to do. */
export function ProblemBox({ problem }: { problem: Problem }) {
  return (
    <div class="problem" role="alert">
      <strong>{problem.title}</strong>
      <p>{visible(problem.detail)}</p>
      {problem.errors.length > 0 && <pre>{problem.errors.map(e => JSON.stringify(e)).join("\n")}</pre>}
      {problem.next && <p class="next">{problem.next}</p>}
    </div>
  );
}

export function Ago({ time }: { time: string }) { return <time dateTime={time} title={new Date(time).toLocaleString()}>{ago(time)}</time>; }

export function Until({ time }: { time: string }) { return <time dateTime={time} title={new Date(time).toLocaleString()}>{until(time)}</time>; }

export function Standing({ run }: { run: Run }) {
  const { text, tone } = standing(run);
  return <span class={`chip ${tone}`}>{text}</span>;
}

/** Ring shows the progress of a loop; it pulses with each pass. */
export function Ring({ passes }: { passes: Passes }) {
  const r = 17;
  const round = 2 * Math.PI * r;
  const share = passes.max > 0 ? Math.min(1, passes.done / passes.max) : 0;
  const badge = `${passes.done}/${passes.max}`;
  return (
    <span class="ring" role="img" aria-label={`iteration ${passes.done} of ${passes.max} is done`}>
      <svg viewBox="0 0 40 40" aria-hidden="true">
        <circle class="track" cx="20" cy="20" r={r} />
        <circle class="fill" cx="20" cy="20" r={r} stroke-dasharray={`${share * round} ${round}`} />
      </svg>
      <span class="badge" key={badge} aria-hidden="true">{badge}</span>
    </span>
  );
}

/** Text shows text of a model, a tool or a person verbatim, never as markup. */
export function Text({ children, label, quiet }: { children: string; label: string; quiet?: boolean }) {
  const long = children.length > 1200 || children.split("\n", 30).length > 24;
  return long
    ? <pre class={quiet ? "text quiet long" : "text long"} tabIndex={0} role="region" aria-label={label}>{visible(children)}</pre>
    : <pre class={quiet ? "text quiet" : "text"}>{visible(children)}</pre>;
}

const firstLines = 20;
const firstChars = 4000;

/**
 * Lines shows a text that a person decides about: no part of it is hidden by scrolling, and a button
 * shows the rest and its length.
 */
export function Lines({ children, label, diff }: { children: string; label: string; diff?: boolean }) {
  const [whole, setWhole] = useState(false);
  const lines = children.split("\n");
  const short = lines.slice(0, firstLines).join("\n").slice(0, firstChars);
  const rest = children.length - short.length;
  const more = lines.length - short.split("\n").length;
  const shown = whole ? children : short;
  return (
    <div role="group" aria-label={label}>
      <pre class="text">{diff
        ? shown.split("\n").map((line, i) => <span key={i} class={line.startsWith("+ ") ? "added" : "removed"}>{visible(line)}{"\n"}</span>)
        : visible(shown)}</pre>
      {rest > 0 && !whole && <button type="button" onClick={() => setWhole(true)}>Show {more > 0 ? `${more} more ${more === 1 ? "line" : "lines"}` : `${rest} more characters`}</button>}
    </div>
  );
}

/** Prose shows text written for people verbatim, with fenced parts as code. */
export function Prose({ children, label }: { children: string; label: string }) {
  const parts = children.split(/^ {0,3}```[^\n]*\n?/m);
  return (
    <div class="prose">
      {parts.map((part, i) => i % 2 === 1 ? <Text key={i} label={`Code in ${label}`}>{part}</Text> : part.trim() && <p key={i}>{visible(part.trim())}</p>)}
    </div>
  );
}

/** Parts shows the body of an entry. */
export function Parts({ parts, about }: { parts: Part[]; about: string }) {
  return (
    <>
      {parts.map((p, i) => (
        <div key={i} class={`note ${p.tone ?? ""}`}>
          {p.line && <span>{visible(p.line)}</span>}
          {p.text && (p.form === "prose"
            ? <Prose label={p.line || about}>{p.text}</Prose>
            : <Text label={`${p.line || about} of ${about}`} quiet={p.form === "value"}>{p.text}</Text>)}
        </div>
      ))}
    </>
  );
}

interface PanelProps { id?: string | undefined; summary: ComponentChildren; open: boolean; class?: string; choose: (open: boolean) => void; children: () => ComponentChildren }

/** Panel is collapsible; the content of a closed panel is not rendered. */
export function Panel({ id, summary, open, class: kind, choose, children }: PanelProps) {
  return (
    <details id={id} class={`panel ${kind ?? ""}`} open={open}>
      <summary onClick={e => { e.preventDefault(); choose(!open); }}>{summary}</summary>
      {open && <div class="inside">{children()}</div>}
    </details>
  );
}

/**
 * Act is a button for an action that may fail. If the action needs a text first, last is the button
 * that performs it; sure is for an action that cannot be undone, which last confirms.
 */
export function Act({ name, kind, shortcut, wants, last, needed, hint, sure, act }: {
  name: string; kind?: string; shortcut?: string; wants?: string; last?: string; needed?: boolean; hint?: string; sure?: boolean; act: (text: string) => Promise<unknown>;
}) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const go = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await act(text);
      setOpen(false);
      setText("");
    } catch (err) {
      setProblem(asProblem(err));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class={kind} data-key={shortcut} disabled={busy} title={away.value ? "The connection is lost; nothing is sent until it is back." : undefined} aria-expanded={wants || sure ? open : undefined} onClick={() => wants || sure ? setOpen(!open) : void go()}>{name}</button>
      {(wants || sure) && open && (
        <form class="asks" onSubmit={e => { e.preventDefault(); void go(); }}>
          {wants && (
            <label>
              <span>{wants}</span>
              <textarea rows={2} value={text} required={needed ?? false} placeholder={hint ?? ""} ref={focused} onInput={e => setText(e.currentTarget.value)} />
            </label>
          )}
          <button type="submit" class={kind} disabled={busy}>{last ?? name}</button>
        </form>
      )}
      {problem && <ProblemBox problem={problem} />}
    </>
  );
}

function focused(el: HTMLElement | null): void { el?.focus(); }
