import { useState } from "preact/hooks";
import { money, tokens, visible } from "./format";
import { Panel, ProblemBox, Text } from "./parts";
import { Copy, useLoaded } from "./shared";
import type { ViewProps } from "./tabs";
import type { Cost, Usage } from "./types";

/** Segment is a part of a request. */
interface Segment {
  kind: string; message?: number; role?: string; name?: string; callId?: string; failed?: boolean; text: string; tokens: number; later: number;
}

/** Sent is a request of a cycle, made again from the journal. */
interface Sent {
  cycle: number; attempt: number; seq: number; model: string; purpose?: string; cycles: number[]; before?: number; summaries?: number[]; segments: Segment[]; changed?: number;
  usage?: Usage & { estimated?: boolean }; cost?: Cost; break?: { segment: string; guess?: string; tokensRewritten: number; usd: number };
  proven: boolean; why?: string; digest?: string; bytes?: number; body?: string; address?: string; headers?: { [name: string]: string };
}

const forms = ["by message", "as JSON", "as curl"] as const;

/** RequestView shows what the run sent to its model in one cycle, for the answer or for the summary of a compaction. */
export default function RequestView({ run, rest }: ViewProps) {
  const [given, purpose] = rest.split(".");
  const cycle = Number(given) || run.cycles;
  const { value: sent, problem } = useLoaded<Sent>(cycle > 0 ? `/v1/runs/${run.id}/requests/${cycle}${purpose ? `?purpose=${encodeURIComponent(purpose)}` : ""}` : "");
  const [form, setForm] = useState<typeof forms[number]>("by message");
  if (cycle === 0) return <p class="empty">This run has asked no model. {run.kind === "Agent" ? "Its first cycle has not begun." : "The runs below it do."}</p>;
  if (problem) return <ProblemBox problem={problem} />;
  if (!sent) return <p class="empty">Making the request again from the journal…</p>;
  const at = sent.cycles.indexOf(sent.cycle);
  const link = (to: number | undefined, text: string, of = sent.purpose) => to !== undefined && <a href={`#/runs/${run.id}/requests/${to}${of ? `.${of}` : ""}`}>{text}</a>;
  const beside = sent.summaries?.includes(sent.cycle);
  return (
    <section aria-label={`Request of cycle ${sent.cycle}`}>
      <h2>The request {sent.purpose ? `for the ${sent.purpose} in` : "of"} cycle {sent.cycle} to {visible(sent.model)}</h2>
      <p class="facts">
        {link(sent.cycles[at - 1], "‹ the one before")} {link(sent.cycles[at + 1], "the next one ›")}
        {sent.purpose ? link(sent.cycle, "the request of the cycle", "") : beside && link(sent.cycle, "the request for the summary", "summary")}
        {sent.attempt > 1 && <span>attempt {sent.attempt}</span>}
        <a href={`#/runs/${run.id}/e/${sent.seq}`}>its cycle in the run</a>
      </p>
      <Proof sent={sent} />
      <Cache sent={sent} />
      <div class="acts" role="group" aria-label="Form">
        {forms.map(f => <button key={f} type="button" aria-pressed={f === form} onClick={() => setForm(f)}>{f}</button>)}
      </div>
      {form === "by message" ? <Messages run={run.id} sent={sent} /> : <Body sent={sent} form={form} />}
      <Fills sent={sent} />
    </section>
  );
}

function Proof({ sent }: { sent: Sent }) {
  return sent.proven
    ? <p><span class="chip good">these bytes were sent</span> {sent.bytes?.toLocaleString()} bytes, with the digest of the journal <code>{sent.digest}</code></p>
    : <p><span class="chip bad">not proven</span> {visible(sent.why ?? "")}</p>;
}

/** Cache says what the provider's cache held of the request, and what a change cost. */
function Cache({ sent }: { sent: Sent }) {
  const u = sent.usage;
  const first = sent.changed ? sent.segments[sent.changed - 1] : undefined;
  return (
    <>
      {u && <p class="facts"><span>{tokens(u)}</span><span>{u.cacheRead.toLocaleString()} read from the cache</span><span>{u.cacheWrite.toLocaleString()} written to it</span><span>{money(sent.cost, u)}</span></p>}
      {sent.before !== undefined && (first
        ? <p>It differs from the request of cycle {sent.before} from here on: <strong>{nameOf(first)}</strong></p>
        : <p>It continues the request of cycle {sent.before}: nothing in it has changed.</p>)}
      {sent.break && (
        <div class="problem" role="status">
          <strong>Cache break at {sent.break.segment}: {sent.break.tokensRewritten.toLocaleString()} tokens were paid again{sent.break.usd > 0 ? `, USD ${sent.break.usd.toFixed(6)}` : ""}</strong>
          {sent.break.guess && <p>{sent.break.guess}</p>}
        </div>
      )}
    </>
  );
}

/** nameOf names a segment in its request. */
function nameOf(s: Segment): string {
  const what = s.name ? `${s.kind} ${visible(s.name)}` : s.kind;
  return s.message ? `message ${s.message}, ${s.role}: ${what}` : what;
}

const atOnce = 60;

function Messages({ run, sent }: { run: string; sent: Sent }) {
  const [shown, setShown] = useState(atOnce);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const first = Math.max(0, Math.min(sent.segments.length - shown, (sent.changed ?? Infinity) - 1));
  const choose = (i: number, on: boolean) => setOpen(was => { const now = new Set(was); if (on) now.add(i); else now.delete(i); return now; });
  return (
    <div class="timeline">
      {first > 0 && <button type="button" onClick={() => setShown(shown + atOnce)}>Show {Math.min(first, atOnce)} earlier of {first}</button>}
      {sent.segments.slice(first).map((s, k) => {
        const i = first + k;
        return (
          <Panel key={`${run} ${sent.cycle} ${i}`} class="call" open={open.has(i)} choose={on => choose(i, on)} summary={(
            <>
              <span class="name">{nameOf(s)}</span>
              <span class="gist">{visible(s.text.slice(0, 200))}</span>
              {sent.changed === i + 1 && <span class="chip wait">changed here</span>}
              {s.failed && <span class="chip bad">failed</span>}
              {s.tokens > 0 && <span class="chip still">{s.tokens.toLocaleString()} tokens</span>}
            </>
          )}>
            {() => <Text label={nameOf(s)}>{s.text}</Text>}
          </Panel>
        );
      })}
    </div>
  );
}

const shownChars = 100_000;

function Body({ sent, form }: { sent: Sent; form: string }) {
  if (!sent.body) return <p class="empty">There are no bytes: {visible(sent.why ?? "")}</p>;
  if (form === "as curl" && !sent.address) return <p class="empty">This model has no address: its answers are in a file.</p>;
  const text = form === "as JSON" ? indented(sent.body) : curl(sent);
  return (
    <>
      <div class="acts"><Copy text={form === "as JSON" ? sent.body : text} /></div>
      {text.length > shownChars && <p class="why">The first {shownChars.toLocaleString()} of {text.length.toLocaleString()} characters; Copy takes all.</p>}
      <Text label={`The request ${form}`}>{text.slice(0, shownChars)}</Text>
    </>
  );
}

function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function quoted(text: string): string { return `'${text.replaceAll("'", `'\\''`)}'`; }

/** curl returns the command that sends the request; the shell's variables have the keys. */
function curl(sent: Sent): string {
  const headers = Object.entries(sent.headers ?? {}).sort().map(([name, value]) => {
    const key = /\$[A-Z_]+$/.test(value);
    return `  -H ${key ? `"${name}: ${value}"` : quoted(`${name}: ${value}`)} \\\n`;
  });
  return `curl ${quoted(sent.address ?? "")} \\\n${headers.join("")}  --data-binary @- <<'PAWL'\n${sent.body}\nPAWL\n`;
}

/** Fills shows what the context consists of, the largest first. */
function Fills({ sent }: { sent: Sent }) {
  const [all, setAll] = useState(false);
  const rows = new Map<string, { name: string; tokens: number; later: number; n: number }>();
  for (const s of sent.segments) {
    const single = s.kind === "result" || !s.message;
    const key = single ? `${s.kind} ${s.callId ?? ""}` : s.kind;
    const row = rows.get(key);
    const name = single ? (s.kind === "result" ? `result of ${visible(s.name ?? "")}` : s.kind) : { text: "texts", call: "calls", reasoning: "reasoning", media: "attachments" }[s.kind] ?? s.kind;
    if (row) { row.tokens += s.tokens; row.n++; row.later = Math.max(row.later, s.later); } else rows.set(key, { name, tokens: s.tokens, later: s.later, n: 1 });
  }
  const sum = sent.segments.reduce((n, s) => n + s.tokens, 0);
  const list = [...rows.values()].filter(r => r.tokens > 0).sort((a, b) => b.tokens - a.tokens);
  const few = all ? list : list.slice(0, 12);
  return (
    <section aria-label="What fills the context">
      <h2>What fills the context</h2>
      <table class="shares">
        <thead><tr><th scope="col">Part</th><th scope="col">Tokens</th><th scope="col">Share</th><th scope="col">Later requests that carried it</th></tr></thead>
        <tbody>
          {few.map((r, i) => (
            <tr key={i}><th scope="row">{r.name}{r.n > 1 && ` (${r.n})`}</th><td>{r.tokens.toLocaleString()}</td><td>{Math.round(100 * r.tokens / Math.max(sum, 1))} %</td><td>{r.later}</td></tr>
          ))}
        </tbody>
      </table>
      {list.length > few.length && <button type="button" onClick={() => setAll(true)}>Show {list.length - few.length} more</button>}
      <p class="why">{sent.usage && !sent.usage.estimated ? "The input that the provider counted, divided by an estimate." : "An estimate: no answer has come, or it had no count."}</p>
    </section>
  );
}
