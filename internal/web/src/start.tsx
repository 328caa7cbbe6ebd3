import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, decides, post, type Problem, token } from "./api";
import { visible } from "./format";
import { Canvas, type Node } from "./canvas";
import { Panel, ProblemBox, Text } from "./parts";
import { Copy, useLoaded } from "./shared";
import type { Page, Run } from "./types";
import { titled } from "./waiting";

/** Runnable is a file in the list of those that can be run by name. */
interface Runnable { name: string; kind?: string; version?: string; description?: string; file: string; problem?: string }

/** Place is a problem of a file. */
interface Place { file: string; line: number; column: number; path: string; message: string; expected?: string }

interface Gate { name: string; decision: "allow" | "ask" | "deny"; rule?: string }

/** FileShown is what a run of a file takes, and what it works with. */
interface FileShown extends Runnable {
  key: "agent" | "workflow"; vars?: string[]; taskVars?: string[]; inputOptional: boolean; readOnly: boolean;
  task?: string; models?: string[]; limits: { [setting: string]: number }; tools?: Gate[]; problems: Place[]; warnings: Place[];
}

/** First is the first event of a run. */
interface First { data: { name?: string; options?: { [name: string]: string }; config?: { limits?: { usd_per_run?: number } }; input?: { parts?: { type: string; text?: string; name?: string }[] } | null } }

/** inputOf returns the text with which a run began. */
function inputOf(first: First | undefined): string { return first?.data.input?.parts?.filter(p => p.type === "text").map(p => p.text ?? "").join("\n") ?? ""; }

/** StartPage lists the files that can be run, or shows the form of one. like is the run that the new one repeats. */
export function StartPage({ name, like }: { name: string; like: string }) {
  useEffect(() => titled(`Start ${name} · Pawl`), [name]);
  const file = useLoaded<FileShown>(name && `/v1/files/${encodeURIComponent(name)}`);
  const first = useLoaded<Page<First>>(like && `/v1/runs/${like}/events?limit=1`);
  const problem = file.problem ?? first.problem;
  return (
    <main id="main" tabIndex={-1} class="start">
      <header class="head"><div>
        {name && <p class="crumbs"><a href="#/start">all files</a>{like && <> › like <a href={`#/runs/${like}`}>run {like}</a></>}</p>}
        <h1>Start {name ? visible(name) : "a run"}</h1>
      </div></header>
      {problem ? <ProblemBox problem={problem} />
        : !name ? <Files />
          : !file.value || like && !first.value ? <p class="empty">Reading the file…</p>
            : <><About file={file.value} />{!file.value.problem && <Steps name={name} />}<Form key={name + like} file={file.value} first={first.value?.items[0]} like={like} /></>}
    </main>
  );
}

/** Files lists the files that can be run by name. */
function Files() {
  const agents = useLoaded<Page<Runnable>>("/v1/agents?limit=500");
  const workflows = useLoaded<Page<Runnable>>("/v1/workflows?limit=500");
  const problem = agents.problem ?? workflows.problem;
  if (problem) return <ProblemBox problem={problem} />;
  if (!agents.value || !workflows.value) return <p class="empty">Reading the files…</p>;
  const all = [...new Map([...agents.value.items, ...workflows.value.items].map(f => [f.file, f])).values()];
  if (all.length === 0) return <p class="empty">The directory of this server has no file that can be run. <code>pawl init</code> writes one.</p>;
  return (
    <ul class="cards">
      {all.map(f => (
        <li key={f.file}>
          <a class="card" href={`#/start?${new URLSearchParams({ file: f.name })}`}>
            <span class="title">{visible(f.name)}</span>
            {f.problem ? <span class="chip bad">cannot run</span> : <span class="chip still">{f.kind}</span>}
            <span class="gist">{visible(f.problem ?? f.description ?? "")}</span>
            <span class="facts"><code>{visible(f.file)}</code></span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** About says what the file is, what a person will be asked about, and what is wrong with it. */
function About({ file: f }: { file: FileShown }) {
  const gated = (decision: Gate["decision"]) => f.tools?.filter(t => t.decision === decision) ?? [];
  const list = (gates: Gate[]): ComponentChildren => gates.map((t, i) => <span key={t.name} title={t.rule}>{i > 0 && ", "}<code>{visible(t.name)}</code></span>);
  const limits = Object.entries(f.limits ?? {});
  const row = (name: string, value: ComponentChildren) => value && <div><dt>{name}</dt><dd>{value}</dd></div>;
  return (
    <>
      {f.description && <p>{visible(f.description)}</p>}
      <Places title="It cannot run" tone="bad" places={f.problems} rest={f.problems.length === 0 ? f.problem : undefined} />
      <Places title="Warnings" tone="wait" places={f.warnings} />
      {!f.problem && (
        <dl class="about">
          {row("Kind", <>{f.kind} in <code>{visible(f.file)}</code>{f.version && `, version ${f.version}`}</>)}
          {row("Models", f.models && visible(f.models.join(", then ")))}
          {row("Asks a person", f.tools && (gated("ask").length > 0 ? <>before each call of {list(gated("ask"))}</> : "before no call, unless its arguments touch what is protected"))}
          {row("Goes ahead with", gated("allow").length > 0 && list(gated("allow")))}
          {row("Refuses", gated("deny").length > 0 && list(gated("deny")))}
          {row("Changes", f.readOnly && "nothing: none of its tools can")}
          {row("Limits", limits.length > 0 && visible(limits.map(([setting, n]) => `${setting} ${n.toLocaleString()}`).join(", ")))}
        </dl>
      )}
    </>
  );
}

/** Steps draws the plan of a file on demand. */
function Steps({ name }: { name: string }) {
  const [open, setOpen] = useState(false);
  const { value, problem } = useLoaded<{ nodes: Node[] }>(open ? `/v1/files/${encodeURIComponent(name)}/plan` : "");
  return (
    <Panel class="part" open={open} choose={setOpen} summary={<span class="name">Its steps</span>}>
      {() => problem?.status === 404 ? <p class="why">This file is one agent, and has no steps.</p> : problem ? <ProblemBox problem={problem} /> : value ? <Canvas nodes={value.nodes} /> : <p class="empty">Reading the plan…</p>}
    </Panel>
  );
}

/** Places lists problems of a file with their lines and columns. */
function Places({ title, tone, places, rest }: { title: string; tone: string; places: Place[]; rest?: string | undefined }) {
  if (places.length === 0 && !rest) return null;
  return (
    <section class={tone === "bad" ? "problem" : "problem still"} aria-label={title}>
      <strong>{title}</strong>
      <ul>
        {places.map((p, i) => (
          <li key={i}>
            {p.line > 0 && <code>{p.file.split("/").pop()}:{p.line}:{p.column}</code>} {p.path && <code>{visible(p.path)}</code>} {visible(p.message)}
            {p.expected && <> (expected {visible(p.expected)})</>}
          </li>
        ))}
        {rest && <li>{visible(rest)}</li>}
      </ul>
    </section>
  );
}

/** Kept is an attachment of the run that is repeated. The server has its content. */
interface Kept { name: string; run: string; index: number }

/** Given is what the form gives a run. */
interface Given { input: string; model: string; budget: string; vars: { [name: string]: string }; kept: Kept[]; files: { name: string; data: string }[] }

/** bodyOf returns the body of the start. */
function bodyOf(f: FileShown, g: Given): { [key: string]: unknown } {
  const vars = Object.fromEntries(Object.entries(g.vars).filter(([, v]) => v !== ""));
  return {
    [f.key]: f.name,
    ...g.input.trim() ? { input: g.input } : {},
    ...g.model.trim() ? { model: g.model.trim() } : {},
    ...g.budget.trim() ? { budget: Number(g.budget) } : {},
    ...Object.keys(vars).length > 0 ? { vars } : {},
    ...g.kept.length + g.files.length > 0 ? { attachments: [...g.kept.map(({ run, index }) => ({ run, index })), ...g.files] } : {},
  };
}

/** quoted returns a word of a shell's command line. */
function quoted(text: string): string { return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`; }

/** commandsOf returns the command lines that start the same run. */
function commandsOf(f: FileShown, g: Given): { curl: string; pawl: string } {
  const body = bodyOf(f, { ...g, files: g.files.map(a => ({ name: a.name, data: "BASE64" })) });
  const flags = [
    ...g.model.trim() ? ["--model", g.model.trim()] : [], ...g.budget.trim() ? ["--budget", g.budget.trim()] : [],
    ...Object.entries(g.vars).filter(([, v]) => v !== "").flatMap(([name, v]) => ["--var", `${name}=${v}`]), ...[...g.kept, ...g.files].flatMap(a => ["--attach", a.name]),
  ];
  return {
    curl: `curl ${token.value ? `-H "Authorization: Bearer $PAWL_TOKEN" ` : ""}-H 'Content-Type: application/json' --data ${quoted(JSON.stringify(body))} ${location.origin}/v1/runs`,
    pawl: ["pawl", "run", f.file, ...g.input.trim() ? [g.input] : [], ...flags].map(quoted).join(" "),
  };
}

/** encoded returns the content of a file in base64. */
async function encoded(file: File): Promise<{ name: string; data: string }> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { name: file.name, data: btoa(text) };
}

const empty: Given = { input: "", model: "", budget: "", vars: {}, kept: [], files: [] };

/** givenBy returns what the form begins with: the file's own values or, where a run is repeated, those of the run. */
function givenBy(f: FileShown, first: First | undefined, like: string): Given {
  const options = first?.data.options ?? {};
  const vars = Object.fromEntries(Object.entries(options).flatMap(([name, value]) => name.startsWith("var.") ? [[name.slice(4), value]] : []));
  const kept = (first?.data.input?.parts ?? []).filter(p => p.type === "media").map((p, index) => ({ name: p.name ?? `attachment ${index + 1}`, run: like, index }));
  return { ...empty, vars, kept, input: inputOf(first), model: options.model ?? "", budget: String(first?.data.config?.limits?.usd_per_run ?? f.limits?.usd_per_run ?? "") };
}

/** Form starts a run of the file. */
function Form({ file: f, first, like }: { file: FileShown; first: First | undefined; like: string }) {
  const [begins] = useState<Given>(() => givenBy(f, first, like));
  const [given, setGiven] = useState<Given>(begins);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const [begun, setBegun] = useState<Run | null>(null);
  if (f.problem) return null;
  const set = (change: Partial<Given>) => setGiven({ ...given, ...change });
  const changed = { ...given, budget: Number(given.budget) === f.limits?.usd_per_run ? "" : given.budget };
  const names = [...f.vars ?? [], ...given.input.trim() ? [] : f.taskVars ?? []];
  const asked = { ...changed, vars: Object.fromEntries(names.map(n => [n, given.vars[n] ?? ""])) };
  const send = async () => {
    setBusy(true);
    setProblem(null);
    setBegun(null);
    try {
      setBegun(await post<Run>("/v1/runs", bodyOf(f, asked)));
    } catch (err) {
      setProblem(asProblem(err));
    } finally {
      setBusy(false);
    }
  };
  const wrong = (name: string) => problem?.fields.find(w => w.field === name)?.message;
  const lines = commandsOf(f, asked);
  return (
    <>
      {!decides() ? <p class="why">A viewer starts no runs. These commands do, for an editor.</p> : (
        <form class="fields" aria-label={`Start ${f.name}`} onSubmit={e => { e.preventDefault(); void send(); }}>
          <label class="field">
            <span>Input{f.inputOptional ? " (may be left out)" : ""}</span>
            <textarea rows={4} value={given.input} required={!f.inputOptional && given.kept.length + given.files.length === 0} onInput={e => set({ input: e.currentTarget.value })} />
          </label>
          {f.task && !given.input.trim() && <div><p class="why">Without an input, the file's own task is the input:</p><Text label="Task of the file">{f.task}</Text></div>}
          {names.map(name => (
            <label class="field" key={name}><span>Value of {visible(`\${${name}}`)}{wrong(name) && <> – {visible(wrong(name)!)}</>}</span>
              <input type="text" value={given.vars[name] ?? ""} required onInput={e => set({ vars: { ...given.vars, [name]: e.currentTarget.value } })} /></label>
          ))}
          <label class="field"><span>Budget in USD</span><input type="text" inputMode="decimal" value={given.budget} onInput={e => set({ budget: e.currentTarget.value })} /></label>
          <label class="field"><span>Another model, as provider/model (may be left out)</span><input type="text" value={given.model} onInput={e => set({ model: e.currentTarget.value })} /></label>
          {begins.kept.length > 0 && (
            <fieldset><legend>Attachments of the run</legend>
              {begins.kept.map(a => (
                <label key={a.index}><input type="checkbox" checked={given.kept.includes(a)} onChange={e => { const on = e.currentTarget.checked; set({ kept: begins.kept.filter(k => k === a ? on : given.kept.includes(k)) }); }} /> {visible(a.name)}</label>
              ))}
            </fieldset>
          )}
          {f.key === "agent" && <label class="field"><span>{begins.kept.length > 0 ? "More attachments" : "Attachments"} (may be left out)</span><input type="file" multiple onChange={e => { void Promise.all([...e.currentTarget.files ?? []].map(encoded)).then(files => set({ files }), err => setProblem(asProblem(err))); }} /></label>}
          {problem && <ProblemBox problem={problem} />}
          <div class="acts"><button type="submit" class="good" disabled={busy}>Start{given.budget.trim() && ` with at most USD ${given.budget.trim()}`}</button></div>
        </form>
      )}
      {begun && <p class="begun" role="status">The run has begun: <a href={`#/runs/${begun.id}`}>run {begun.id}</a></p>}
      <section aria-label="The same by command">
        <h2>The same by command</h2>
        {([["over HTTP", lines.curl], ["in the directory of the files", lines.pawl]] as const).map(([where, line]) => (
          <div key={where}><p class="why">{where}</p><Text label={`Command ${where}`}>{line}</Text><Copy text={line} /></div>
        ))}
      </section>
    </>
  );
}
