// Starts a run on a server of Pawl, prints what happens, and asks you about calls that need an approval.
//
//     pawl serve --agents examples/ask-first --workspace /tmp/notes &
//     node --experimental-strip-types examples/client-typescript/client.ts ask-first "Publish the release notes."
//
// It needs no package. Node 22.6 and later runs it as it is; for Node 20 remove the types first, for example with
// esbuild. PAWL_URL is the server's address. The token is PAWL_TOKEN, or what 'pawl token show' prints.

import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";

const url = process.env.PAWL_URL ?? "http://127.0.0.1:3001";
const token = process.env.PAWL_TOKEN ?? execFileSync("pawl", ["token", "show"], { encoding: "utf8" }).trim();

type Event = { pos?: number; type: string; data?: any };
type Call = { callId: string; tool: string; args: unknown };

async function request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  // The body of a refusal is a problem of RFC 9457.
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

// The events after the id last as they come. The stream goes on until the run has ended.
async function* events(run: string, last: string): AsyncGenerator<Event> {
  const stream = await request("GET", `/v1/runs/${run}/events`, undefined, { Accept: "text/event-stream", "Last-Event-ID": last });
  if (!stream.body) return;
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream.body as any) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length));
  }
}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Asks about each call that waits, and tells the server what you say.
async function decide(run: string): Promise<void> {
  const waiting: { items: Call[] } = await (await request("GET", `/v1/runs/${run}/approvals`)).json();
  for (const call of waiting.items) {
    process.stdout.write(`May it call ${call.tool} with ${JSON.stringify(call.args)}? [y/N] `);
    const said = await answers.next();
    const yes = !said.done && said.value.trim().toLowerCase() === "y";
    console.log();
    await request("POST", `/v1/runs/${run}/${yes ? "approve" : "reject"}`, { callId: call.callId, reason: "said by hand" });
  }
}

async function main(agent: string, input: string): Promise<number> {
  const run: string = (await (await request("POST", "/v1/runs", { agent, input })).json()).id;
  let last = "0";
  for (;;) {
    for await (const { pos, type, data } of events(run, last)) {
      if (pos) last = String(pos); // live events have no place in the journal
      if (type === "tool_call") console.log("→", data.describe);
      if (type === "tool_result") console.log(data.isError ? "✗" : "✓", data.tool);
      if (type === "run.parked") {
        if (data.reason !== "approval_required") throw new Error(`the run waits: ${data.reason}`);
        break;
      }
      if (type === "run.completed") {
        console.log(data.outcome.final_output || data.outcome.reason);
        return data.outcome.ok ? 0 : 1;
      }
    }
    await decide(run);
  }
}

const [agent, input] = process.argv.slice(2);
if (!agent || !input) {
  console.error("usage: client.ts AGENT INPUT");
  process.exit(1);
}
main(agent, input).then(
  (code) => process.exit(code),
  (error) => {
    console.error(error.message);
    process.exit(1);
  },
);
