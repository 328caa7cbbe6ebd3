// Starts, watches, decides and stops loops with the reference client, over the
// transports that the arguments name, and prints what it hears.
const { io } = require("socket.io-client");

const [url, transports] = process.argv.slice(2);
const socket = io(url, { transports: transports.split(","), reconnection: false });
const say = (...words) => console.log(words.join(" "));

let started = false;
let reached = socket.io.engine.transport.name;
socket.io.engine.on("upgrade", (transport) => {
  reached = transport.name;
  begin();
});
socket.on("connect", () => {
  if (transports !== "polling,websocket") begin();
});

function begin() {
  if (!socket.connected) return socket.once("connect", begin);
  say("speaks", reached);
  socket.emit("loop:start", { agentId: "reviewed", message: "go" }, (answer) => { started = answer.success; });
}

socket.on("agent:loop_iteration", (d) => say("iteration", d.agentId, `${d.iteration}/${d.maxIterations}`));
socket.on("agent:error", (d) => say("error", d.agentId, d.type, d.error));
socket.on("notification", (d) => {
  say(d.level, d.title, d.actions ?? "");
  if (d.level !== "action_required") return;
  socket.emit("loop:approve", { agentId: d.agentId, loopId: d.loopId, approved: d.iteration === 2 });
});
socket.on("agent:status", (d) => {
  if (d.status === "paused") return; // at times the decision is faster
  if (d.status !== "running") say("status", d.agentId, d.status);
  if (d.agentId === "reviewed" && d.status === "idle") {
    socket.emit("loop:start", { agentId: "off", message: "go" });
    socket.emit("loop:start", { agentId: "slow", message: "go" });
  }
  if (d.agentId === "slow" && d.status === "running") socket.emit("loop:stop", { agentId: "slow" });
  if (d.agentId === "slow" && d.status === "idle") socket.disconnect();
});
socket.on("connect_error", (e) => say("refused", e.message));
socket.on("disconnect", (reason) => {
  say("disconnected", reason, started);
  process.exit(0);
});
setTimeout(() => process.exit(1), 60_000).unref();
