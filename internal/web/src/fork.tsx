import { useEffect, useState } from "preact/hooks";
import { asProblem, decides, get, post, principal, Problem } from "./api";
import { EffectsAfter } from "./effects";
import { titleOf, visible } from "./format";
import { Act, ProblemBox } from "./parts";
import { titled } from "./waiting";
import type { Body, Run, Shown } from "./types";

/** Forked is a fork; problem is why it does not run. */
interface Forked extends Run { problem?: { title: string; detail: string; next?: string; status: number } }

const open = (run: Run) => { location.hash = `#/runs/${run.id}`; };

/** ForkPage forks a run before or after one of its entries, with changes. */
export function ForkPage({ run, entry }: { run: string; entry: string }) {
  const [about, setAbout] = useState<{ head: Shown; body: Body } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [before, setBefore] = useState(false);
  useEffect(() => titled("Fork · Pawl"), []);
  useEffect(() => {
    const gone = new AbortController();
    Promise.all([get<Shown>(`/v1/runs/${run}`, gone.signal), get<Body>(`/v1/runs/${run}/view/${entry}`, gone.signal)]).then(
      ([head, body]) => {
        setAbout({ head, body });
        setBefore(body.entry.state !== undefined && body.entry.state !== "done" && Number(body.entry.id) > 1);
      }, err => { if (!gone.signal.aborted) setProblem(asProblem(err)); });
    return () => gone.abort();
  }, [run, entry]);
  if (problem) return <main id="main" tabIndex={-1}><h1>Fork of run {run}</h1><ProblemBox problem={problem} /></main>;
  if (!about) return <main id="main" tabIndex={-1}><h1>Fork of run {run}</h1><p class="empty">Reading the run…</p></main>;
  const { head, body: { entry: at } } = about;
  const first = Number(at.id);
  const seq = before ? Math.max(first - 1, 1) : at.seq;
  return (
    <main id="main" tabIndex={-1} class="fork">
      <p class="crumbs"><a href={`#/runs/${run}/e/${at.id}`}>back to the run</a></p>
      <h1>Fork {titleOf(head)}</h1>
      <p class="facts"><span>run <code>{run}</code></span><span>{at.kind} {visible(at.name ?? "")}</span>{at.line && <span>{visible(at.line)}</span>}</p>
      <fieldset>
        <legend>Where the fork begins</legend>
        <label><input type="radio" name="place" checked={before} disabled={first < 2} onChange={() => setBefore(true)} /> before this entry</label>
        <label><input type="radio" name="place" checked={!before} onChange={() => setBefore(false)} /> after it</label>
      </fieldset>
      <EffectsAfter run={run} seq={seq} />
      {!decides() && <p class="why">Your role may not fork runs.</p>}
      {decides() && <ForkForm head={head} seq={seq} call={!before && at.kind === "call" ? at.ref ?? "" : ""} />}
      {decides() && at.kind === "step" && head.state === "ended" && !head.parent && at.ref && <Rerun run={run} step={at.ref} child={at.run ?? ""} />}
    </main>
  );
}

/** ForkForm takes what the fork changes. The model, the prompt and results are for an admin. */
function ForkForm({ head, seq, call }: { head: Shown; seq: number; call: string }) {
  const [message, setMessage] = useState("");
  const [model, setModel] = useState("");
  const [prompt, setPrompt] = useState("");
  const [room, setRoom] = useState("");
  const [result, setResult] = useState("");
  const [setting, setSetting] = useState("");
  const [value, setValue] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const agent = head.kind === "Agent";
  const admin = principal.value?.role === "admin";
  const changed = { model: model.trim(), prompt: prompt.trim(), message: message.trim() };
  const send = async (run: boolean) => {
    setBusy(true);
    setProblem(null);
    try {
      const fork = await post<Forked>(`/v1/runs/${head.id}/fork`, {
        ...Object.fromEntries(Object.entries(changed).filter(([, text]) => text)),
        ...result && call ? { results: [{ callId: call, output: result }] } : { seq },
        ...room ? { contextWindow: Number(room) } : {},
        ...setting && value ? { limits: [{ setting, value: value === "none" ? value : Number(value) }] } : {},
        run,
      });
      if (fork.problem) throw new Problem(fork.problem.status, fork.problem.title, `run ${fork.id} was created: ${fork.problem.detail}`, fork.problem.next);
      open(fork);
    } catch (err) {
      setProblem(asProblem(err));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="fields" aria-label="What the fork changes" onSubmit={e => { e.preventDefault(); void send(true); }}>
      <h2>What the fork changes</h2>
      {!agent && <p class="why">A workflow goes on as it was begun: its agents are changed in their files, or by a fork of a step's run.</p>}
      {agent && <label class="field"><span>Another message, with which it goes on</span><textarea rows={3} value={message} onInput={e => setMessage(e.currentTarget.value)} /></label>}
      {agent && admin && call && <label class="field"><span>Another result of the call</span><textarea class="code" rows={4} value={result} onInput={e => setResult(e.currentTarget.value)} /></label>}
      {agent && admin && <label class="field"><span>Another model, as provider/model</span><input type="text" value={model} onInput={e => setModel(e.currentTarget.value)} /></label>}
      {agent && admin && <label class="field"><span>Another system prompt</span><textarea rows={3} value={prompt} onInput={e => setPrompt(e.currentTarget.value)} /></label>}
      {agent && <label class="field"><span>Another context window, in tokens</span><input type="text" inputMode="numeric" value={room} onInput={e => setRoom(e.currentTarget.value)} /></label>}
      <div class="acts">
        <label class="field">
          <span>Another limit</span>
          <select value={setting} onChange={e => setSetting(e.currentTarget.value)}>
            <option value="">none</option>
            {head.limits.map(u => <option key={u.setting} value={u.setting}>{u.setting}</option>)}
          </select>
        </label>
        {setting && <label class="field"><span>Value of {setting}</span><input type="text" inputMode="decimal" value={value} onInput={e => setValue(e.currentTarget.value)} /></label>}
      </div>
      {problem && <ProblemBox problem={problem} />}
      <div class="acts">
        <button type="submit" class="good" disabled={busy}>Fork and run</button>
        <button type="button" disabled={busy} onClick={() => void send(false)}>Fork, do not run</button>
      </div>
    </form>
  );
}

/** Rerun does a step of an ended workflow again, alone or with what depends on it. */
function Rerun({ run, step, child }: { run: string; step: string; child: string }) {
  return (
    <section aria-label="Do the step again">
      <h2>Do the step again</h2>
      <div class="acts">
        <Act name={`Do ${step} again, with what depends on it`} act={() => post<Run>(`/v1/runs/${run}/retry`, { step }).then(open)} />
        {child && <Act name={`Do ${step} again alone`} act={() => post<Run>(`/v1/runs/${child}/fork`, { seq: 1 }).then(open)} />}
      </div>
      <p class="why">What completed before stays. Alone, the step runs as a run of its own, and the workflow is not continued.</p>
    </section>
  );
}
