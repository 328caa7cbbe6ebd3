import { useState } from "preact/hooks";
import { tokens, visible } from "./format";
import { ProblemBox } from "./parts";
import { useLoaded } from "./shared";
import type { ViewProps } from "./tabs";
import type { Cost, Usage } from "./types";

/** Spent is what one run of the tree paid a model for in one cycle. */
interface Spent { run: string; name?: string; step?: string; cycle: number; model?: string; calls: number; usage: Usage; usd: number; reserved: number }

const ways: { [name: string]: (s: Spent, root: string) => string } = {
  "by cycle": (s, root) => `${s.run === root ? "" : `${placeOf(s)}, `}cycle ${s.cycle}`,
  "by model": s => s.model ?? "no model",
  "by run": (s, root) => s.run === root ? "this run itself" : placeOf(s),
};

const atOnce = 40;

/** Part is what a part of the requests of a run cost, in all requests that carried it. */
interface Part { run: string; kind: string; name?: string; callId?: string; requests: number; tokens: number; usd: number }

const byPart = "by tool result";

const kinds: { [kind: string]: string } = { text: "texts", call: "calls", reasoning: "reasoning", media: "attachments", system: "system prompt", answer: "answers", other: "summaries and other requests" };

function partOf(p: Part): string {
  const [, cycle, call] = /-(\d+)-(\d+)$/.exec(p.callId ?? "") ?? [];
  return p.kind === "result" ? `result of ${p.name}${cycle ? `, cycle ${cycle}, call ${call}` : ` ${p.callId}`}` : kinds[p.kind] ?? p.kind;
}

function placeOf(s: Spent): string { return s.step ? `step ${s.step}` : `${s.name ?? "run"} ${s.run}`; }

/** usd shows an amount to the micro-dollar. */
function usd(n: number): string { return `USD ${n.toFixed(6)}`; }

/** SpendView shows what the run and those below it spent, with what is reserved beside it. */
export default function SpendView({ run }: ViewProps) {
  const [way, setWay] = useState("by cycle");
  const { value, problem } = useLoaded<{ items: Spent[]; parts?: Part[]; cost: Cost }>(`/v1/runs/${run.id}/spend${way === byPart ? "?parts=true" : ""}`);
  const [shown, setShown] = useState(atOnce);
  if (problem) return <ProblemBox problem={problem} />;
  if (!value) return <p class="empty">Reading…</p>;
  if (value.items.length === 0) return <p class="empty">No model has been paid yet, by this run or by one below it.</p>;
  const rows = new Map<string, { usd: number; reserved: number; calls: number; usage: Usage }>();
  const none: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const places = new Map(value.items.map(s => [s.run, s.run === run.id ? "" : `${placeOf(s)}, `]));
  for (const p of value.parts ?? []) rows.set(`${places.get(p.run) ?? ""}${partOf(p)}`, { usd: p.usd, reserved: 0, calls: p.requests, usage: { ...none, [p.kind === "answer" ? "output" : "input"]: Math.round(p.tokens) } });
  for (const s of way === byPart ? [] : value.items) {
    const name = ways[way]!(s, run.id);
    const row = rows.get(name) ?? { usd: 0, reserved: 0, calls: 0, usage: none };
    rows.set(name, {
      usd: row.usd + s.usd, reserved: row.reserved + s.reserved, calls: row.calls + s.calls,
      usage: { ...none, input: row.usage.input + s.usage.input, output: row.usage.output + s.usage.output, cacheRead: row.usage.cacheRead + s.usage.cacheRead },
    });
  }
  const list = [...rows].sort(([, a], [, b]) => b.usd + b.reserved - a.usd - a.reserved);
  const sum = list.reduce((n, [, r]) => n + r.usd, 0);
  const reserved = value.items.reduce((n, s) => n + s.reserved, 0);
  const most = Math.max(...list.map(([, r]) => r.usd + r.reserved), 1e-9);
  const rest = value.cost.usd - sum;
  return (
    <section aria-label="Spend">
      <div class="acts" role="group" aria-label="Rows">
        {[...Object.keys(ways), byPart].map(w => <button key={w} type="button" aria-pressed={w === way} onClick={() => setWay(w)}>{w}</button>)}
      </div>
      <table class="shares">
        <thead><tr><th scope="col">{way}</th><th scope="col">Spent</th><th scope="col">Share</th><th scope="col">Reserved</th><th scope="col">{way === byPart ? "Requests" : "Calls"}</th><th scope="col">Tokens</th></tr></thead>
        <tbody>
          {list.slice(0, shown).map(([name, r]) => (
            <tr key={name}>
              <th scope="row">{visible(name)}</th><td>{usd(r.usd)}</td>
              <td><meter min={0} max={most} value={r.usd + r.reserved} aria-label={`Spend of ${visible(name)}`}>{usd(r.usd)}</meter></td>
              <td>{r.reserved > 0 ? usd(r.reserved) : ""}</td><td>{r.calls}</td><td>{tokens(r.usage)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot><tr><th scope="row">all</th><td>{usd(sum)}</td><td /><td>{reserved > 0 ? usd(reserved) : ""}</td><td /><td /></tr></tfoot>
      </table>
      {list.length > shown && <button type="button" onClick={() => setShown(shown + atOnce)}>Show {Math.min(atOnce, list.length - shown)} more of {list.length - shown}</button>}
      {Math.abs(rest) >= 5e-7 && <p class="why">The account of the run has {usd(rest)} more, of which no row tells.</p>}
      {way === byPart && <p class="why">What a part cost in all requests that carried it: its share of their input, with what the cache had at its price.</p>}
      {!value.cost.priced && <p class="why">Some of these calls have no known price, so they cost more than is shown.</p>}
    </section>
  );
}
