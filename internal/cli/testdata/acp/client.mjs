// An editor: node client.mjs SDK PAWL DIR [SESSION]. Without SESSION it creates one, sends
// two messages, allows what is asked, cancels a message of another session at its question,
// and kills the agent; with SESSION it loads that. It prints the session and what it was
// sent of it.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [sdk, pawl, dir, loaded] = process.argv.slice(2);
const acp = await import(sdk);
const child = spawn(pawl, ["acp", "--agent", "agent.yaml"], { cwd: dir, stdio: ["pipe", "pipe", "ignore"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const lines = [];
let text = "", cancelled = "", peer;

function flush() {
  if (text) lines.push(text);
  text = "";
}

await acp
  .client({ name: "editor" })
  .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
    if (params.sessionId !== cancelled) return { outcome: { outcome: "selected", optionId: "allow_once" } };
    await peer.notify(acp.methods.agent.session.cancel, { sessionId: cancelled });
    return { outcome: { outcome: "cancelled" } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    if (params.sessionId === cancelled) return;
    const u = params.update;
    if (u.content?.text !== undefined && u.sessionUpdate !== "tool_call_update") {
      if (!text.startsWith(u.sessionUpdate)) flush(), (text = u.sessionUpdate + " ");
      text += u.content.text;
      return;
    }
    flush();
    if (u.sessionUpdate.startsWith("tool_call")) lines.push([u.sessionUpdate, u.title, u.kind, u.status].filter(Boolean).join(" "));
  })
  .connectWith(stream, async (agent) => {
    peer = agent;
    await agent.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    const given = { cwd: dir, mcpServers: [] };
    if (loaded) {
      await agent.request(acp.methods.agent.session.load, { sessionId: loaded, ...given });
      return;
    }
    const { sessionId } = await agent.request(acp.methods.agent.session.new, given);
    const say = (message, session = sessionId) => agent.request(acp.methods.agent.session.prompt, { sessionId: session, prompt: [{ type: "text", text: message }] });
    for (const message of ["Write it.", "Write it again."]) {
      flush();
      lines.push("user_message_chunk " + message);
      const { stopReason } = await say(message);
      if (stopReason !== "end_turn") throw new Error("a turn stops with " + stopReason);
    }
    flush();
    cancelled = (await agent.request(acp.methods.agent.session.new, given)).sessionId;
    for (const message of ["Write it.", "Go on."]) {
      const { stopReason } = await say(message, cancelled);
      if (stopReason !== "cancelled") throw new Error("a cancelled turn stops with " + stopReason);
    }
    console.log(sessionId);
    child.kill("SIGKILL");
  });
flush();
console.log(lines.join("\n"));
child.stdin.end();
