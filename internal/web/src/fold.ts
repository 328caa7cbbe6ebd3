import { signal } from "@preact/signals";
import type { Event, Failure, Outcome, Usage, Cost } from "./types";

/** Call is one tool call of a cycle, from the request to its settlement. */
export interface Call {
  id: string; tool: string; about?: string; args: unknown;
  /** asked is why it waits or waited for a decision, decided what became of that. */
  asked?: string; decided?: { kind: string; approver: string; reason?: string };
  /** editedBy is who replaced the model's arguments. */
  editedBy?: string; refused?: string; attempt?: number; child?: string;
  result?: { output: string; isError: boolean; errorType?: string; exitCode?: number; truncated?: boolean; durationMs?: number };
}

/** Note is a line that is about nothing that has a panel. */
export interface Note { text: string; detail?: string; tone?: "bad" | "wait" | "good" }

/** Cycle is one model call and the tool calls that it asked for. */
export interface Cycle {
  is: "cycle"; key: string; rev: number; n: number; max: number; at: string; end?: string;
  model?: string; reasoning: string; text: string; usage?: Usage; cost?: Cost; finish?: string;
  calls: Call[]; notes: Note[]; compressions: Note[]; terminator?: Note;
  /** answered says that text is the whole answer and not what has come of it; deaf, that its beginning was not heard. */
  answered: boolean; deaf: boolean;
}

/** Child is a run that this one started, with what an iteration or a step adds. */
export interface Child {
  is: "child"; key: string; rev: number; run: string; kind: string; name?: string; step?: string; at: string;
  outcome?: Outcome; parked?: string; iteration?: { n: number; max?: number; item?: unknown; output: string };
  learning?: string; notes: Note[]; status?: string; error?: Failure;
}

/** Step is a step of a workflow that is no run: a loop, or a command. */
export interface Step {
  is: "step"; key: string; rev: number; step: string; at: string; status?: string; content?: string; error?: Failure;
  argv?: string[]; output?: string; exitCode?: number; notes: Note[];
}

/** Said is what happened to the run as a whole. */
export interface Said { is: "said"; key: string; rev: number; at: string; note: Note }

export type Entry = Cycle | Child | Step | Said;

/** Passes are how far a loop has come, from the iterations that have ended. */
export interface Passes { done: number; max: number }

/** RunView is what a run's events tell, folded one after the other. */
export class RunView {
  /** rev changes when something did: components that read it are drawn again. */
  readonly rev = signal(0);
  seq = 0;
  pos = 0;
  entries: Entry[] = [];
  started: any = null;
  outcome: Outcome | null = null;
  /** raise is the limit that the run has parked at. */
  raise: { run: string; setting: string; atLeast?: number } | null = null;
  loops = new Map<string, Passes>();
  private newest = 0;
  private cycles = new Map<number, Cycle>();
  private calls = new Map<string, { call: Call; cycle: Cycle }>();
  private children = new Map<string, Child>();
  /** ofStep is the last run of each step. */
  private ofStep = new Map<string, string>();
  private steps = new Map<string, Step>();

  constructor(readonly id: string) {}

  /** passes are those of the loop that the run is, null before its first iteration has ended. */
  passes(): Passes | null {
    return this.started?.kind === "Workflow" || this.outcome ? null : [...this.loops.values()][0] ?? null;
  }

  apply(e: Event): void {
    if (e.seq) {
      this.seq = e.seq;
      this.pos = e.pos ?? this.pos;
    }
    folds[e.type]?.(this, e, e.data);
  }

  /** lastText is the text of the last cycle. */
  lastText(): string { return this.cycles.get(this.newest)?.text.trim() ?? ""; }

  /** deafen passes over the rest of an answer whose beginning was not heard: half of one misleads. */
  deafen(): void {
    const c = this.lastCycle();
    if (c && !c.answered && !c.text) c.deaf = true;
  }

  /** changed tells those who show the run. */
  changed(): void { this.rev.value++; }

  say(e: Event, text: string, detail?: string, tone?: Note["tone"]): void {
    this.entries.push({ is: "said", key: `said ${e.seq}`, rev: 0, at: e.time, note: note(text, detail, tone) });
  }

  cycle(n: number | undefined): Cycle | undefined {
    const c = this.cycles.get(n ?? 0);
    if (c) c.rev++;
    return c;
  }

  lastCycle(): Cycle | undefined { return this.cycle(this.newest); }

  beginCycle(e: Event, n: number, max: number): void {
    const c: Cycle = { is: "cycle", key: `cycle ${n}`, rev: 0, n, max, at: e.time, reasoning: "", text: "", calls: [], notes: [], compressions: [], answered: false, deaf: false };
    this.newest = n;
    this.cycles.set(n, c);
    this.entries.push(c);
  }

  call(id: string): Call | undefined {
    const of = this.calls.get(id);
    if (of) of.cycle.rev++;
    return of?.call;
  }

  addCall(c: Cycle, call: Call): void {
    const before = this.calls.get(call.id);
    if (before) Object.assign(before.call, call); // its arguments were edited
    else {
      c.calls.push(call);
      this.calls.set(call.id, { call, cycle: c });
    }
  }

  child(run: string): Child | undefined {
    const c = this.children.get(run);
    if (c) c.rev++;
    return c;
  }

  childOfStep(step: string | undefined): Child | undefined {
    return this.child(this.ofStep.get(step ?? "") ?? "");
  }

  addChild(c: Child): void {
    this.children.set(c.run, c);
    if (c.step) this.ofStep.set(c.step, c.run);
    this.entries.push(c);
  }

  step(e: Event, step: string): Step {
    let s = this.steps.get(step);
    if (!s) {
      s = { is: "step", key: `step ${step} ${e.seq}`, rev: 0, step, at: e.time, notes: [] };
      this.steps.set(step, s);
      this.entries.push(s);
    }
    s.rev++;
    return s;
  }

  /** noteOn adds a line where it belongs: to a cycle, a step, a child, or to the run. */
  noteOn(e: Event, n: Note): void {
    const at = this.cycle(e.cycle) ?? this.childOfStep(e.step ?? e.data.step) ?? this.steps.get(e.step ?? e.data.step ?? "");
    if (!at) return this.say(e, n.text, n.detail, n.tone);
    at.rev++;
    at.notes.push(n);
  }
}

function note(text: string, detail?: string, tone?: Note["tone"]): Note {
  const n: Note = { text };
  if (detail) n.detail = detail;
  if (tone) n.tone = tone;
  return n;
}

function by(d: any): string { return d.principal?.name ?? d.by ?? d.approver ?? ""; }

type Fold = (v: RunView, e: Event, d: any) => void;

const said = (text: (d: any) => string, detail?: (d: any) => string | undefined, tone?: Note["tone"]): Fold =>
  (v, e, d) => v.noteOn(e, note(text(d), detail?.(d), tone));

const decided: Fold = (v, e, d) => {
  const call = v.call(d.callId);
  if (call) call.decided = { kind: d.kind, approver: by(d), reason: d.reason };
  else v.noteOn(e, note(`${d.kind} by ${by(d) || "nobody"}`, d.reason));
};

/** folds say what each type of event adds; others add nothing that is shown. */
const folds: { [type: string]: Fold } = {
  "run.started": (v, _, d) => { v.started = d; },
  "run.forked": (v, e, d) => v.say(e, `forked from run ${d.from} at event ${d.seq}`),
  "run.parked": (v, e, d) => {
    v.raise = d.limit || d.parentLimit ? { run: d.parentLimit ? d.limitRun ?? e.parent ?? v.id : v.id, setting: d.limit || d.parentLimit, atLeast: d.atLeast } : null;
    v.say(e, `parked: ${String(d.reason).replaceAll("_", " ")}`, d.detail, "wait");
  },
  "run.resumed": (v, e, d) => { v.raise = null; v.say(e, d.recovered ? "resumed after its process had left it" : "resumed"); },
  "run.terminated_by": (v, e, d) => {
    const why = [d.kind, d.limit, d.step && `step ${d.step}`, d.iteration && `iteration ${d.iteration}`, d.index !== undefined && `condition ${d.index + 1}`].filter(Boolean).join(", ");
    const n = note(`ended by ${d.reason}${why ? ` (${why})` : ""}`, d.error?.message ?? d.detail, d.error ? "bad" : "good");
    const c = v.lastCycle();
    if (c) c.terminator = n;
    else v.say(e, n.text, n.detail, n.tone);
  },
  "run.completed": (v, e, d) => {
    v.outcome = d.outcome;
    v.loops.clear();
    const c = v.lastCycle();
    if (c) c.end ??= e.time;
  },
  "cancel.requested": said(d => `${by(d) || "somebody"} asks it to end`, d => d.reason),
  "pause.requested": said(d => `${by(d) || "somebody"} asks it to pause`),
  "input.received": (v, e, d) => v.say(e, `${by(d) || "somebody"} says`, d.text),
  "budget.raised": (v, e, d) => { v.raise = null; v.say(e, `${by(d) || "somebody"} sets ${d.setting} to ${d.value < 0 ? "none" : d.value}`); },
  "budget.warning": said(d => `${d.percent} % of ${d.setting} is used`, undefined, "wait"),
  "budget.overrun": said(d => `${d.setting} is used up`, d => `${d.used} of ${d.limit}`, "bad"),
  "budget.refused": said(d => `${d.setting} has no room for another call`, d => d.detail, "bad"),
  checkpoint: said(d => `checkpoint: ${d.label}`, d => d.verdict),
  stuck: said(d => `it repeats itself (${d.pattern}): ${d.action}`, d => d.tool, "wait"),
  nudge: said(d => `nudged: ${String(d.kind).replaceAll("_", " ")}`, d => d.text),
  "hook.result": said(d => `hook ${d.hook}: ${d.decision}`, d => d.reason),
  "permission.added": said(d => `${by(d)} allows this for the rest of the run`, d => JSON.stringify(d.permission)),
  "answer.checked": (v, e, d) => { if (d.problem) v.noteOn(e, note("the answer does not fit the schema", d.problem, "wait")); },
  "judge.verdict": said(d => `the judge says ${d.verdict}`, d => d.reason),
  "condition.evaluated": said(d => d.error ? "a condition failed" : `condition: ${JSON.stringify(d.value)}`, d => d.error ? `${d.expression}: ${d.error}` : d.expression),
  "message.sent": said(d => d.to ? `message from ${d.from} to ${d.to}` : `${d.from} says`, d => d.text),
  "message.dropped": said(d => `a message to ${d.to} was dropped`, d => d.reason, "wait"),
  "wait.started": said(d => `waits until ${new Date(d.until).toLocaleTimeString()}`),
  "review.requested": said(d => `iteration ${d.iteration} waits for a review`, undefined, "wait"),
  "review.resolved": decided,

  "cycle.start": (v, e, d) => v.beginCycle(e, d.cycle, d.maxCycles),
  "model.requested": (v, e, d) => {
    const c = v.cycle(e.cycle);
    if (c && !d.purpose) { c.model = d.model; c.text = c.reasoning = ""; c.deaf = false; }
  },
  text: (v, e, d) => { const c = v.cycle(e.cycle); if (c && !c.answered && !c.deaf) c.text += d.text; },
  reasoning: (v, e, d) => { const c = v.cycle(e.cycle); if (c && !c.answered && !c.deaf) c.reasoning += d.text; },
  "text.reset": (v, e) => { const c = v.cycle(e.cycle); if (c && !c.answered) c.text = c.reasoning = ""; },
  "model.response": (v, e, d) => {
    const c = v.cycle(e.cycle);
    if (!c) return;
    if (d.purpose) { c.notes.push(note(`the model was also called for: ${d.purpose}`)); return; }
    const texts = (kind: string) => (d.parts ?? []).filter((p: any) => p.type === kind).map((p: any) => p.text ?? "").join("\n\n");
    Object.assign(c, { answered: true, text: texts("text"), reasoning: texts("reasoning"), usage: d.usage, cost: d.cost, finish: d.finishReason, model: d.model });
    if (!d.toolCalls?.length) c.end = e.time;
  },
  "model.attempt_failed": said(d => `attempt ${d.attempt} of ${d.model} failed: ${d.class}`, d => [d.message, d.partialText].filter(Boolean).join("\n\n"), "bad"),
  "model.retrying": said(d => `tries ${d.toModel} again in ${d.delayMs} ms`, d => d.reason),
  tool_call: (v, e, d) => {
    const c = v.cycle(e.cycle);
    if (c) v.addCall(c, { id: d.callId, tool: d.tool, about: d.describe, args: d.args ?? d.argsText ?? {}, ...(d.editedBy ? { editedBy: d.editedBy } : {}) });
  },
  "policy.decision": (v, _, d) => {
    const call = v.call(d.callId);
    if (call && d.decision === "deny") call.refused = d.reason || d.rule;
  },
  "tool.pending_approval": (v, e, d) => {
    const call = v.call(d.callId);
    if (call) { call.asked = d.reason || d.rule || "it must be approved"; delete call.decided; }
    else v.noteOn(e, note(`a command waits for a decision: ${d.tool}`, undefined, "wait"));
  },
  "tool.approval_resolved": decided,
  "tool.started": (v, _, d) => { const call = v.call(d.callId); if (call) call.attempt = d.attempt; },
  "tool.attempt_failed": said(d => `attempt ${d.attempt} failed`, d => d.result?.output, "bad"),
  tool_result: (v, _, d) => { const call = v.call(d.callId); if (call) call.result = d; },
  "tool.results": (v, e) => { const c = v.cycle(e.cycle); if (c) c.end = e.time; },
  "history.compressed": (v, e, d) => {
    const n = note(`history compressed (${d.strategy}): ${d.dropped} messages left, ${d.kept} kept`, [`about ${d.tokensBefore} tokens before, ${d.tokensAfter} after`, d.summary].filter(Boolean).join("\n\n"));
    const c = v.cycle(e.cycle) ?? v.lastCycle();
    if (c) c.compressions.push(n);
    else v.say(e, n.text, n.detail);
  },

  "child.started": (v, e, d) => {
    const call = d.callId && v.call(d.callId);
    if (call) call.child = d.child;
    else v.addChild({ is: "child", key: `run ${d.child}`, rev: 0, run: d.child, kind: d.kind, name: d.name, step: d.step, at: e.time, notes: [] });
  },
  "child.parked": (v, _, d) => { const c = v.child(d.child); if (c) c.parked = d.reason; },
  "child.waiting": (v, _, d) => { const c = v.child(d.child); if (c) { if (d.waiting) c.parked ??= "waiting"; else delete c.parked; } },
  "child.finished": (v, _, d) => { const c = v.child(d.child); if (c) { c.outcome = d.outcome; delete c.parked; } },
  iteration: (v, e, d) => {
    const c = v.child(d.child ?? "") ?? v.childOfStep(`${d.step}.${d.index}`) ?? v.childOfStep(`${d.step}[${d.index}]`);
    const it = { n: d.iteration, max: d.maxIterations, item: d.item, output: d.output };
    if (c) c.iteration = it;
    else v.noteOn(e, note(`iteration ${d.iteration}${d.maxIterations ? ` of ${d.maxIterations}` : ""}`, d.output));
    if (d.maxIterations) v.loops.set(d.step ?? "", { done: d.iteration, max: d.maxIterations });
  },
  progress: (v, e, d) => {
    const c = v.entries.findLast(e => e.is === "child" && e.iteration?.n === d.iteration) as Child | undefined;
    if (!c) return v.noteOn(e, note(`learnt in iteration ${d.iteration}`, d.learning));
    c.learning = d.learning;
    c.rev++;
  },
  "step.started": (v, e, d) => { if (!d.child || !v.child(d.child)) v.step(e, d.step); },
  "step.finished": (v, e, d) => {
    const c = v.childOfStep(d.step);
    if (c) return void Object.assign(c, { status: d.status, error: d.error });
    const s = v.step(e, d.step);
    Object.assign(s, { status: d.status, content: d.content, error: d.error });
    v.loops.delete(d.step);
  },
  "step.skipped": (v, e, d) => { Object.assign(v.step(e, d.step), { status: "skipped", content: d.reason }); },
  "command.started": (v, e, d) => { v.step(e, d.step ?? d.id).argv = d.argv; },
  "command.finished": (v, e, d) => { Object.assign(v.step(e, d.step ?? d.id), { output: d.error ? `${d.output}\n${d.error}` : d.output, exitCode: d.exitCode }); },
};
