import { signal } from "@preact/signals";
import type { Cost, Run, Usage, Use } from "./types";

/** now is the current time, updated as often as a reader needs it. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/** ago returns how long ago a time was, in one unit. */
export function ago(time: string): string {
  const ms = now.value - Date.parse(time);
  return ms < 1000 ? "just now" : `${span(ms)} ago`;
}

/** until returns how long it is to a time, in one unit. */
export function until(time: string): string {
  const ms = Date.parse(time) - now.value;
  return ms < 1000 ? "now" : `in ${span(1000 * Math.floor(ms / 1000))}`;
}

/** span returns a duration in one unit. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 && ms % 1000 !== 0 ? s.toFixed(1) : Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

export function money(c?: Cost, u?: Usage): string {
  if (!c || !c.priced && c.usd === 0) return u && u.input + u.output > 0 ? "no price known" : "";
  const usd = c.usd === 0 ? "$0" : `$${c.usd < 0.1 ? c.usd.toFixed(4) : c.usd.toFixed(2)}`;
  return c.priced ? usd : `${usd} and more, without a price`;
}

/** useOf returns how much of a limit is used, as in "3 of 5 cycles". */
export function useOf(u: Use): string {
  if (u.setting.endsWith("_seconds")) return `${span(1000 * u.used)} of ${span(1000 * u.limit)}${u.unit ? ` ${u.unit}` : ""}`;
  if (u.unit) return `${u.used.toLocaleString()} of ${u.limit.toLocaleString()} ${u.unit}`;
  return `${money({ usd: u.used, priced: true })} of ${money({ usd: u.limit, priced: true })}`;
}

export function tokens(u?: Usage): string {
  return u && u.input + u.output > 0 ? `${u.input.toLocaleString()} in, ${u.output.toLocaleString()} tokens out` : "";
}

export function titleOf(r: Pick<Run, "name" | "kind" | "id">): string { return visible(r.name || r.kind || r.id); }

/** pretty returns a value as text: indented JSON, and strings unchanged. */
export function pretty(v: unknown): string {
  return typeof v === "string" ? v : JSON.stringify(v, null, 2) ?? "";
}

/** standing returns the state of a run in a word or two, and its CSS class. */
export function standing(r: Run): { text: string; tone: "good" | "bad" | "busy" | "wait" | "still" } {
  if (r.state === "ended") {
    const o = r.outcome;
    if (!o) return { text: r.detail || "ended", tone: "still" };
    const why = o.reason && o.reason !== o.status && !["final_answer"].includes(o.reason) ? `: ${o.reason}` : "";
    return { text: o.status + why, tone: o.ok ? "good" : o.status === "failed" ? "bad" : "still" };
  }
  if (r.state === "queued" && r.forkOf) return { text: "a fork that waits to be run", tone: "wait" };
  if ((r.state === "queued" || r.state === "waiting") && /^(no|a) worker /.test(r.detail ?? "")) return { text: `waits: ${r.detail}`, tone: "wait" };
  if (r.undriven) return { text: "left by its process", tone: "bad" };
  if (r.answered || r.expired) return { text: "answered; resume it", tone: "wait" };
  if (r.pausing) return { text: "pausing", tone: "busy" };
  if (r.state === "parked" || r.state === "paused") {
    const why: { [reason: string]: string } = { approval_required: "waits for a decision", blocked_on_input: "waits for an answer" };
    return { text: why[r.detail ?? ""] ?? `parked: ${r.detail || "paused"}`, tone: r.detail && why[r.detail] ? "wait" : "still" };
  }
  return { text: r.state, tone: "busy" };
}

const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u034f\u115f\u1160\u2800\u3164\uffa0\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}]/gu;

/**
 * visible shows characters that reorder or hide text, such as ⟨U+202E⟩, and the number of consecutive
 * spaces if the text after them may be out of view. Characters that join letters and emoji stay.
 */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n")
    .replace(hidden, (c, at: number, all: string) => /[\u200c\u200d\p{Variation_Selector}]/u.test(c) && /[^\u0000-\u007f]/.test(all[at - 1] ?? "")
      ? c : `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .replace(/(\S) {9,}/g, (run, before: string) => `${before}⟨${run.length - before.length} spaces⟩`);
}
