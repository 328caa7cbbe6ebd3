import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { decides, get, post } from "./api";
import { FormCard } from "./form";
import { lazily } from "./lazy";
import { Act, Ago, Lines, Text, Until } from "./parts";
import { pretty, titleOf, visible } from "./format";
import type { Limit, Page, Permission, Question, Shown } from "./types";
import { cardShown, dismiss } from "./waiting";

const ReviewedFiles = lazily(() => import("./reviewed").then(m => m.ReviewedFiles));

const asks: { [kind: string]: string } = {
  call: "asks for a call", review: "asks for a review", goal: "asks about its goal", limit: "is at a limit", form: "asks for input",
};

/** QuestionCard shows a question of a run, its subject, and the ways to decide. */
export function QuestionCard({ question, linked, done }: { question: Question; linked: boolean; done: () => void }) {
  const what = (question.what ?? {}) as { [key: string]: unknown };
  const [edited, setEdited] = useState<string | null>(null);
  useEffect(() => cardShown(question), [question.run, question.id, question.seq]);
  const decide = (verb: string, body: object) => post(`/v1/runs/${question.run}/${verb}`, { callId: question.id, digest: question.digest, ...body }).then(done);
  const subject = typeof what.tool === "string" ? what.tool : "";
  const files = (Array.isArray(what.runs) ? what.runs : []) as { path: string; digest?: string }[];
  const args = "args" in what ? pretty(what.args) : "";
  return (
    <section class="question" tabIndex={-1} aria-label={`Question: ${subject || question.kind}, ${question.id} of run ${question.run}`}>
      <h2>
        {linked ? <a href={`#/runs/${question.path[0] ?? question.run}`}>Run {question.path[0] ?? question.run}</a> : question.step ? `Step ${question.step}` : "It"}
        {" "}{asks[question.kind] ?? "asks"}{subject && <>: <code>{visible(subject)}</code></>}
      </h2>
      {question.reason && <p class="why">{visible(question.reason)}</p>}
      <Context question={question} linked={linked} />
      {question.kind === "review" && <ReviewedFiles run={question.run} step={question.step ?? ""} iteration={Number(what.iteration)} />}
      {visible(args) !== args && <p class="why" role="note">It contains invisible characters or spaces, marked ⟨…⟩.</p>}
      {args
        ? edited === null
          ? <Called args={what.args} />
          : <label><span>Arguments, as JSON</span><textarea class="code" rows={8} value={edited} onInput={e => setEdited(e.currentTarget.value)} /></label>
        : question.kind !== "form" && <About what={what} />}
      {files.map(f => (
        <p key={f.path} class="why">
          {f.digest ? <>runs <code>{visible(f.path)}</code> as it is now (sha256 <code>{f.digest.slice(0, 16)}…</code>)</> : <>runs <code>{visible(f.path)}</code>, whose content could not be read</>}
        </p>
      ))}
      {!decides()
        ? <p class="why">Your role may not decide.</p>
        : typeof what.setting === "string" ? <div class="acts"><Raise limit={what as unknown as Limit} done={done} /></div>
        : question.kind === "form" ? <FormCard what={what} decide={decide} /> : (
          <div class="acts">
            <Act name={edited === null ? "Approve" : "Approve as edited"} kind="good" shortcut="a" act={async () => decide("approve", edited === null ? {} : { args: parsed(edited) })} />
            {question.offer && edited === null && <Act name="Approve, and allow this for the rest of the run" act={() => decide("approve", { remember: true })} />}
            <Act name="Reject" kind="bad" shortcut="r" wants="Why? The model is told." last="Reject it" needed act={reason => decide("reject", { reason })} />
            {question.kind === "call" && <button type="button" data-key="e" onClick={() => setEdited(edited === null ? args : null)}>{edited === null ? "Edit the arguments" : "Leave them as they are"}</button>}
          </div>
        )}
    </section>
  );
}

/** Closed says how a question was closed, until it is dismissed. */
export function Closed({ question, became }: { question: Question; became: string }) {
  return (
    <section class="question gone" aria-label={`Decided: ${question.id} of run ${question.run}`} role="status">
      <p>Run <a href={`#/runs/${question.path[0] ?? question.run}`}>{question.path[0] ?? question.run}</a>, {question.id}: {became}</p>
      <button type="button" onClick={() => dismiss(question)}>Dismiss</button>
    </section>
  );
}

/** runs holds the loaded runs that ask, by id and number of the event that asks. */
const runs = new Map<string, Promise<Shown>>();

interface First { data: { input?: { parts?: { text?: string }[] } } }

/** loadRun loads a run with its input. */
async function loadRun(id: string): Promise<Shown> {
  const [shown, first] = await Promise.all([get<Shown>(`/v1/runs/${id}`), get<Page<First>>(`/v1/runs/${id}/events?limit=1`)]);
  return { ...shown, input: (first.items[0]?.data.input?.parts ?? []).map(p => p.text ?? "").join(" ").slice(0, 200) };
}

/** useRun loads the run that asks a question. */
function useRun({ run, seq }: Question): Shown | null {
  const [shown, setShown] = useState<Shown | null>(null);
  useEffect(() => {
    const key = `${run} ${seq ?? 0}`;
    let loaded = runs.get(key);
    if (!loaded) runs.set(key, loaded = loadRun(run));
    loaded.then(setShown, () => { runs.delete(key); });
  }, [run, seq]);
  return shown;
}

/** Context shows which run asks and where, since when and until when, and what the run has read. */
function Context({ question: q, linked }: { question: Question; linked: boolean }) {
  const run = useRun(q);
  const read = [["untrusted text", run?.taint?.untrusted], ["private data", run?.taint?.private]] as const;
  return (
    <>
      <p class="facts">
        {run && linked && <span>{titleOf(run)}{run.input && `: ${visible(run.input)}`}</span>}
        {q.step && <span>step {visible(q.step)}</span>}
        {q.path.length > 1 && <span>{q.path.map((id, i) => <Fragment key={id}>{i > 0 && " › "}<a href={`#/runs/${id}`}>{id}</a></Fragment>)}</span>}
        {q.seq && <a href={`#/runs/${q.run}/e/${q.seq}`}>where it asks</a>}
        {q.rule && q.rule !== q.reason && <span>rule {visible(q.rule)}</span>}
        {q.risk && <span>risk: {q.risk.replace("_", " ")}</span>}
        {q.since && <span>asked <Ago time={q.since} /></span>}
        {q.expiresAt && <span>expires <Until time={q.expiresAt} /></span>}
      </p>
      {read.map(([what, from]) => from && (
        <p key={what} class="taint">It has read {what} since cycle {from.cycle}, by <code>{visible(from.tool)}</code>, in <a href={`#/runs/${from.run}`}>run {from.run}</a>.</p>
      ))}
      {q.offer && <p class="why">For the rest of the run: <code>{visible(ruleOf(q.offer))}</code></p>}
    </>
  );
}

/** ruleOf returns a permission as the command line shows it. */
function ruleOf(p: Permission): string {
  return `allow ${p.tool}, ${p.line ? `exactly the line ${p.line}` : p.command ? `command ${p.command}` : `path ${p.path ?? ""}`}`;
}

/**
 * Called shows the arguments of a call by their kind: a command, the lines of a file, an edit, or else
 * JSON.
 */
function Called({ args }: { args: unknown }) {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return <Lines label="Arguments">{pretty(args)}</Lines>;
  const { command, path, content, old_string: before, new_string: after, ...rest } = args as { [name: string]: unknown };
  const of = typeof path === "string" ? visible(path) : "";
  const parts = [];
  if (of) parts.push(<p key="path" class="why">File <code>{of}</code></p>);
  if (typeof command === "string") parts.push(<Lines key="command" label="Command">{command}</Lines>);
  else if (command !== undefined) rest.command = command;
  if (typeof content === "string") parts.push(<Lines key="content" label={`Content of ${of}`}>{content}</Lines>);
  else if (content !== undefined) rest.content = content;
  if (typeof before === "string" && typeof after === "string") {
    parts.push(<Lines key="edit" label={`Edit of ${of}`} diff>{[...diffLines("- ", before), ...diffLines("+ ", after)].join("\n")}</Lines>);
  }
  if (path !== undefined && !of) rest.path = path;
  if (Object.keys(rest).length > 0) parts.push(<Lines key="rest" label={parts.length > 0 ? "Other arguments" : "Arguments"}>{pretty(rest)}</Lines>);
  return <>{parts}</>;
}

/** diffLines prefixes the lines of a text with a mark. */
function diffLines(mark: string, text: string): string[] { return text === "" ? [] : text.replace(/\n$/, "").split("\n").map(line => mark + line); }

/** Alike shows calls of one tool that one rule asks about, which can be decided at once. */
export function Alike({ questions, done }: { questions: Question[]; done: (q: Question) => void }) {
  const groups = new Map<string, Question[]>();
  for (const q of questions) {
    const tool = (q.what as { tool?: unknown } | null)?.tool;
    if (q.kind === "call" && typeof tool === "string") groups.set(`${tool}\u0000${q.reason}`, [...groups.get(`${tool}\u0000${q.reason}`) ?? [], q]);
  }
  const several = [...groups.values()].filter(g => g.length > 1);
  if (!decides() || several.length === 0) return null;
  const all = (group: Question[], verb: string, body: object) => async () => {
    for (const q of group) {
      await post(`/v1/runs/${q.run}/${verb}`, { callId: q.id, digest: q.digest, ...body });
      done(q);
    }
  };
  return (
    <section class="alike" aria-label="Similar calls">
      {several.map(group => {
        const tool = visible((group[0]!.what as { tool: string }).tool);
        return (
          <div key={tool + group[0]!.reason} class="acts">
            <p>{group.length} calls of <code>{tool}</code>{group[0]!.reason && <>, {visible(group[0]!.reason)}</>}</p>
            <Act name={`Approve all ${group.length}`} kind="good" act={all(group, "approve", {})} />
            <Act name={`Reject all ${group.length}`} kind="bad" wants="Why? The model is told." last="Reject them" needed act={reason => all(group, "reject", { reason })()} />
          </div>
        );
      })}
    </section>
  );
}

/** Raise lets a run that has parked at a limit continue. */
export function Raise({ limit, done }: { limit: Limit; done: () => void }) {
  return (
    <Act name={`Raise ${limit.setting}`} wants={`New value of ${limit.setting}`} needed hint={limit.atLeast ? `at least ${limit.atLeast}` : ""}
      act={async value => post(`/v1/runs/${limit.run}/budget`, { setting: limit.setting, value: Number(value) }).then(done)} />
  );
}

/** About shows the subject of a question that is not about a call. */
function About({ what }: { what: { [key: string]: unknown } }) {
  return (
    <dl class="about">
      {Object.entries(what).filter(([, v]) => v !== "" && v !== null).map(([name, v]) => (
        <div key={name}><dt>{name}</dt><dd>{typeof v === "string" || typeof v === "object" ? <Text label={name}>{pretty(v)}</Text> : String(v)}</dd></div>
      ))}
    </dl>
  );
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (err) {
    throw new Error(`the arguments are no JSON: ${(err as Error).message}`);
  }
}
