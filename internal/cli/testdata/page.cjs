// Plays what happens to the page beside other processes: a command line that decides, and
// a server that is killed. It is run in the directory of a project, prints a line for
// each scene, and starts the servers itself.
const { chromium } = require("playwright-core");
const { spawn, execFile } = require("child_process");
const { strict: assert } = require("assert");

const patience = Number(process.env.PAWL_SCENE_MS ?? 60_000);
const pause = ms => new Promise(r => setTimeout(r, ms));
const inProject = { cwd: process.env.PROJECT };

const servers = new Set();

/** serve starts a server, and gives its process once it listens. */
const serve = (address, ...args) => new Promise((done, fail) => {
  const server = spawn("pawl", ["serve", "--addr", address, "--no-auth", ...args], { ...inProject, stdio: ["ignore", "pipe", "ignore"] });
  servers.add(server);
  let said = "";
  server.stdout.on("data", text => {
    said += text;
    if (said.includes("\n")) done(Object.assign(server, { url: said.split("\n")[0].split("/#")[0].replace(/\/$/, "") }));
  });
  server.on("error", fail);
  server.on("exit", code => servers.delete(server) && fail(new Error(`the server ended with ${code}: ${said}`)));
});
process.on("exit", () => servers.forEach(server => server.kill("SIGKILL")));
const dies = server => new Promise(done => { server.on("exit", done); server.kill("SIGKILL"); });
const pawl = (...args) => new Promise(done => execFile("pawl", args, inProject, (err, out, said) => done({ code: err ? err.code : 0, out, said })));

const api = async (url, path, body) => {
  const r = await fetch(url + path, body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {});
  const answer = await r.json();
  assert(r.ok, JSON.stringify(answer));
  return answer;
};
const reaches = async (url, id, is) => {
  for (;;) {
    const run = await api(url, `/v1/runs/${id}`);
    if (is(run)) return run;
    await pause(50);
  }
};
const chip = (page, text) => page.locator("h1 .chip", { hasText: text });
const panel = (page, name) => page.locator("details", { has: page.locator(`> summary .name:text-is("${name}")`) });

const scenes = {
  "two tabs and a command line decide at once, one wins and the others say so": async browser => {
    const server = await serve("127.0.0.1:0");
    const { url } = server;
    const won = new Set();
    for (let turn = 0; turn < 6; turn++) {
      const { id } = await api(url, "/v1/runs", { agent: "asks", input: "go" });
      await reaches(url, id, r => r.waiting.length > 0);
      const context = await browser.newContext();
      context.setDefaultTimeout(patience);
      const tabs = [];
      for (const place of [`runs/${id}`, "questions"]) {
        const tab = await context.newPage();
        await tab.goto(`${url}/#/${place}`);
        await tab.getByRole("region", { name: `of run ${id}` }).waitFor();
        tabs.push(tab);
      }
      const card = tab => tab.getByRole("region", { name: `of run ${id}` });
      await card(tabs[1]).getByRole("button", { name: "Reject", exact: true }).click();
      await card(tabs[1]).getByRole("textbox").fill("not this one");
      const events = async type => (await api(url, `/v1/runs/${id}/events?limit=500`)).items.filter(e => e.type === type);
      // Where the tab's click is not first, the card may be gone before it.
      const clicks = (tab, name) => card(tab).getByRole("button", { name, exact: true }).evaluateAll(all => all[0]?.click());
      const first = [() => clicks(tabs[0], "Approve"), () => clicks(tabs[1], "Reject it"), () => pawl("runs", "approve", id, `${id}-1-1`)];
      const order = [...first.slice(turn % 3), ...first.slice(0, turn % 3)];
      // A process takes longer to start than a click, so it has its turns before them.
      const results = turn % 3 === 2 ? [await order[0](), ...await Promise.all([order[1](), order[2]()])] : await Promise.all(order.map(act => act()));
      const command = results[(3 - turn % 3 + 2) % 3];
      const { answered, state } = await reaches(url, id, r => r.state === "ended" || r.answered);
      if (answered && state !== "ended") await fetch(`${url}/v1/runs/${id}/resume`, { method: "POST" }); // the command line only decides
      await reaches(url, id, r => r.state === "ended");
      const decisions = await events("tool.approval_resolved");
      assert.equal(decisions.length, 1, "the call was decided several times");
      const [{ data: { kind, approver } }] = decisions;
      const winner = approver.startsWith("http:") ? (kind === "rejected" ? "a tab that rejects" : "a tab that approves") : "the command line";
      won.add(winner);
      assert.equal((await events("tool_result")).length, 1);
      // Each loser says who decided and what; the winner's card is gone without a word.
      const said = new RegExp(`${approver.replace(/^[a-z]+:/, "")}.*: ${kind}|${approver}: ${kind}`);
      for (const [i, tab] of tabs.entries()) {
        await card(tab).waitFor({ state: "detached" }).catch(async err => {
          throw new Error(`${winner} won, and the card of tab ${i} stays:\n${await tab.locator("main").innerText()}`);
        });
        const mine = winner === ["a tab that approves", "a tab that rejects"][i];
        const closed = tab.getByRole("status", { name: `of run ${id}` });
        if (mine) await closed.waitFor({ state: "detached" });
        else {
          assert.match(await closed.textContent().catch(async err => {
            throw new Error(`${winner} won, and tab ${i} does not say so:\n${await tab.locator("main").innerText()}`);
          }), said);
        }
      }
      if (winner !== "the command line") assert(command.code !== 0 && /already|decided|no open|has ended|waits for nothing/.test(command.said), `the command line ends with ${command.code}: ${command.said}`);
      else assert.equal(command.code, 0, command.said);
      await context.close();
    }
    console.error(`# won: ${[...won].join(", ")}`);
    await dies(server);
  },

  "a card that is shown before the questions are loaded says how it was closed": async browser => {
    const server = await serve("127.0.0.1:0");
    const { url } = server;
    for (const verb of ["approve", "reject"]) {
      const { id } = await api(url, "/v1/runs", { agent: "asks", input: "go" });
      const { waiting: [{ id: callId }] } = await reaches(url, id, r => r.waiting.length > 0);
      const context = await browser.newContext();
      context.setDefaultTimeout(patience);
      const tab = await context.newPage();
      let release;
      const held = new Promise(done => { release = done; });
      await tab.route("**/v1/questions?*", route => held.then(() => route.continue()));
      await tab.goto(`${url}/#/runs/${id}`);
      const card = tab.getByRole("region", { name: `of run ${id}` });
      await card.waitFor();
      await api(url, `/v1/runs/${id}/${verb}`, { callId, reason: "not this one" });
      await card.waitFor({ state: "detached" });
      release();
      await tab.getByRole("status", { name: `of run ${id}` }).getByText(verb).waitFor();
      await context.close();
    }
    await dies(server);
  },

  "a server is killed during a stream and started again, and the view is that of a fresh load": async browser => {
    let server = await serve("127.0.0.1:0");
    const { url } = server;
    const address = new URL(url).host;
    const { id } = await api(url, "/v1/runs", { agent: "flood", input: "go" });
    const context = await browser.newContext();
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    await page.goto(`${url}/#/runs/${id}`);
    for (const cycle of [2, 4]) {
      await panel(page, `cycle ${cycle}/50`).waitFor();
      await dies(server);
      await page.getByText("Connection lost").waitFor();
      assert.equal(await page.locator(".what").evaluate(el => getComputedStyle(el).filter === "grayscale(1)"), true, "what is shown is not dimmed");
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("alert").getByText("Nothing was sent").waitFor();
      server = await serve(address);
      await page.getByText("live", { exact: true }).or(chip(page, "completed")).waitFor();
    }
    await chip(page, "completed").waitFor();
    /** whole opens all cycles, and gives the text of the run. */
    const whole = async () => {
      const cycles = page.locator("details.cycle");
      await cycles.nth(7).waitFor();
      for (let i = 0; i < await cycles.count(); i++) {
        if (!await cycles.nth(i).evaluate(d => d.open)) await cycles.nth(i).locator("> summary").click();
        await cycles.nth(i).locator("> .inside > .note, > .inside > .prose").first().waitFor();
      }
      await page.getByText("Reading").waitFor({ state: "detached" });
      return (await page.locator(".what > .timeline > details").allInnerTexts()).join("\n");
    };
    const followed = await whole();
    assert.match(followed, /cycle 8\/50/);
    await page.reload();
    await chip(page, "completed").waitFor();
    assert.equal(await whole(), followed);
    await context.close();
    await dies(server);
  },
};

(async () => {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"] });
  for (const [name, play] of Object.entries(scenes)) {
    if (!new RegExp(process.env.PAWL_SCENE ?? "").test(name)) continue;
    let timer;
    try {
      await Promise.race([play(browser), new Promise((_, stop) => { timer = setTimeout(() => stop(new Error("the scene takes too long")), 3 * patience); })]);
      console.log(`ok ${name}`);
    } catch (err) {
      console.log(`not ok ${name}\t${JSON.stringify(err.stack)}`);
    }
    clearTimeout(timer);
  }
  await browser.close();
  process.exit();
})();
