// The answers of the API; /openapi.json describes all of them.

export type State = "queued" | "running" | "waiting" | "parked" | "paused" | "ended";

export const states: State[] = ["queued", "running", "waiting", "parked", "paused", "ended"];

export interface Usage { input: number; output: number; cacheRead: number; cacheWrite: number; reasoning: number }

export interface Cost { usd: number; priced: boolean }

export interface Failure { class?: string; message?: string }

export interface Outcome {
  status: string; reason: string; ok: boolean; completed: boolean;
  limit?: string; error?: Failure; final_output?: string; last_output?: string; next_safe_action?: string;
  usage?: Usage; cost?: Cost; iterations?: number;
}

/** Run is a run in a list. */
export interface Run {
  id: string; parent?: string; root?: string; depth?: number; kind: string; name?: string;
  created: string; updated: string; state: State; detail?: string; cycles: number; seq: number;
  outcome?: Outcome; step?: string; forkOf?: string;
  /** input is the beginning of a root's input. */
  input?: string;
  answered?: boolean; expired?: boolean; pausing?: boolean; undriven?: boolean;
}

/** Question is a question of a run. */
export interface Question {
  id: string; kind: "call" | "review" | "goal" | "limit" | "form"; run: string; path: string[]; step?: string;
  reason: string; rule?: string; risk?: string; offer?: Permission; digest: string; seq?: number; since?: string; expiresAt?: string; what: unknown;
}

/** Permission is a rule that a person may add for the rest of a run. */
export interface Permission { tool: string; command?: string; path?: string; line?: string }

/** TaintSource is the call with which a run first read untrusted or private text. */
export interface TaintSource { run: string; cycle: number; callId?: string; tool: string }

/** Shown is the state of a run, with the questions of the run and its descendants. */
export interface Shown extends Run { usage: Usage; cost: Cost; waiting: Question[]; limits: Use[]; taint?: { untrusted?: TaintSource; private?: TaintSource } }

/** Use is how much of a limit a run has used; without a unit it is money or seconds. */
export interface Use { setting: string; unit?: string; used: number; limit: number }

export type EntryState = "running" | "waiting" | "done" | "failed" | "denied" | "rejected" | "skipped" | "cancelled";

/** Entry is the summary of one thing that a run did. */
export interface Entry {
  id: string; kind: "cycle" | "call" | "child" | "iteration" | "step" | "question" | "note";
  parent?: string; below?: number; failures?: number; name?: string; state?: EntryState; line?: string;
  run?: string; ref?: string; start: string; seconds?: number; usage?: Usage; cost?: Cost; seq: number;
}

/** Part is a line of an entry's body, or a text below a line. */
export interface Part { tone?: string; line?: string; text?: string; form?: "prose" | "output" | "value" }

export interface Body { entry: Entry; parts: Part[] }

/** Limit is the limit at which a run has parked. */
export interface Limit { run: string; setting: string; atLeast?: number }

/** Entries is a page of entries, read from the end. */
export interface Entries { items: Entry[]; before?: string; earlier?: number; pos: number; limit?: Limit }

/** Progress is how far a call is, as its tool reports it. */
export interface Progress { callId?: string; done?: number; total?: number; message?: string }

/** Told is an item of a stream: a changed entry, a piece of a model's answer, or the progress of a call. */
export interface EntryChange { run: string; entry?: Entry; last?: boolean; data?: { text?: string } & Progress }

/** Told is an event of a stream. */
export interface Told<T = EntryChange> { id: number; type: string; data: T }

/** QuestionChange is a question that was asked or, with an approver, decided. */
export interface QuestionChange { run: string; type: string; id?: string; decision?: string; approver?: string }

/** Removed is a run that was removed. */
export interface Removed { run: string; removed: true }

export interface Page<T> { items: T[]; next?: string }

/** Principal is the user as the server identified it. */
export interface Principal { name: string; role: string; proof: string }
