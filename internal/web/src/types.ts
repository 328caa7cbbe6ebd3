// What the API answers with; /openapi.json has all of it.

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

/** Run is a run as lists have it. */
export interface Run {
  id: string; parent?: string; root?: string; depth?: number; kind: string; name?: string;
  created: string; updated: string; state: State; detail?: string; cycles: number; seq: number;
  outcome?: Outcome; step?: string; forkOf?: string;
  /** input is the beginning of what a root was given. */
  input?: string;
  answered?: boolean; expired?: boolean; pausing?: boolean; undriven?: boolean;
}

/** Question is something that a run asks people. */
export interface Question {
  id: string; kind: "call" | "review" | "goal" | "limit" | "form"; run: string; path: string[]; step?: string;
  reason: string; digest: string; expiresAt?: string; what: unknown;
}

/** Shown is a run as it stands, with all that it and the runs below it ask. */
export interface Shown extends Run { usage: Usage; cost: Cost; waiting: Question[] }

export type EntryState = "running" | "waiting" | "done" | "failed" | "denied" | "rejected" | "skipped" | "cancelled";

/** Entry is one thing that a run did, at a glance. */
export interface Entry {
  id: string; kind: "cycle" | "call" | "child" | "iteration" | "step" | "question" | "note";
  parent?: string; below?: number; failures?: number; name?: string; state?: EntryState; line?: string;
  run?: string; ref?: string; start: string; seconds?: number; usage?: Usage; cost?: Cost; seq: number;
}

/** Part is a line of the body of an entry, or a text under one. */
export interface Part { tone?: string; line?: string; text?: string; form?: "prose" | "output" | "value" }

export interface Body { entry: Entry; parts: Part[] }

/** Limit is what a run has parked at. */
export interface Limit { run: string; setting: string; atLeast?: number }

/** Entries is a page of entries, read from the end. */
export interface Entries { items: Entry[]; before?: string; earlier?: number; pos: number; limit?: Limit }

/** Told is what a stream sends: an entry that has changed, or a word of a model. */
export interface Told { id: number; type: string; data: { run: string; entry?: Entry; last?: boolean; data?: { text?: string } } }

export interface Page<T> { items: T[]; next?: string }

/** Principal is who the server takes us for. */
export interface Principal { name: string; role: string; proof: string }
