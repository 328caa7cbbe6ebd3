// Measures the page in a browser, and prints a line of JSON for each figure: its name, the
// target, what was measured, and the unit. A figure is the median of five after a warm-up
// where nothing else is said. It is given the address of a server.
const [open] = process.argv.slice(2);
const { chromium } = require("playwright-core");
const { strict: assert } = require("assert");

const patience = 120_000;
const rounds = 5;
const idleMinutes = Number(process.env.PAWL_IDLE_MINUTES ?? 2);

const api = async (path, body) => {
  const r = await fetch(open + path, body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {});
  const answer = await r.json();
  assert(r.ok, JSON.stringify(answer));
  return answer;
};
const pause = ms => new Promise(r => setTimeout(r, ms));
const begin = async body => (await api("/v1/runs", body)).id;
const reaches = async (id, is) => {
  for (;;) {
    const run = await api(`/v1/runs/${id}`);
    if (is(run)) return run;
    await pause(50);
  }
};
const ended = id => reaches(id, r => r.state === "ended");
const asks = id => reaches(id, r => r.waiting.length > 0);

const share = (all, of) => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(of * all.length))];
const median = all => share(all, 0.5);
const report = (name, target, measured, unit) => console.log(JSON.stringify({ name, target, measured: Math.round(10 * measured) / 10, unit }));

/** several measures once more than rounds, and leaves out the first. */
async function several(measure) {
  const all = [];
  for (let i = 0; i <= rounds; i++) all.push(await measure());
  return all.slice(1);
}

const nodes = page => page.evaluate(() => document.querySelectorAll("*").length);
const panel = (page, name) => page.locator("details", { has: page.locator(`> summary .name:text-is("${name}")`) });

/** watched is a page that keeps the durations of its long tasks, and the times of its frames. */
async function watched(context) {
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.tasks = [];
    new PerformanceObserver(all => window.tasks.push(...all.getEntries().map(e => e.duration))).observe({ type: "longtask", buffered: true });
    window.frames = ms => new Promise(done => {
      const all = [];
      const end = performance.now() + ms;
      const frame = was => requestAnimationFrame(now => { all.push(now - was); now < end ? frame(now) : done(all.slice(1)); });
      frame(performance.now());
    });
  });
  return page;
}
/** longest is the longest task since it was asked last, 0 where none took 50 ms. */
const longest = page => page.evaluate(async () => {
  await new Promise(done => setTimeout(done, 100)); // the browser tells of a task after it
  return Math.max(0, ...window.tasks.splice(0));
});
/** opened clicks, and gives the time to the frame that has a selector. */
const opened = (page, click, there) => page.evaluate(([click, there]) => new Promise(done => {
  const began = performance.now();
  document.querySelector(click).click();
  const look = () => document.querySelector(there) ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
  look();
}), [click, there]);

const figures = {
  async "a run is opened"(context) {
    for (const [agent, events] of [["events800", 800], ["events12000", 12_000], ["events100000", 100_000]]) {
      const id = await begin({ agent, input: "go" });
      const { seq } = await ended(id);
      assert(seq >= events, `${agent} has ${seq} events`);
      const paints = [], usable = [], sizes = [], heads = [], views = [], finds = [];
      const timed = async (list, path) => { const began = performance.now(); await api(path); list.push(performance.now() - began); };
      await several(async () => {
        const page = await context.newPage();
        await page.goto(`${open}/#/runs/${id}`);
        usable.push(await page.evaluate(() => new Promise(done => {
          const look = () => document.querySelector("details.cycle[open] .note, details.cycle[open] .prose") && document.querySelector("h1 .chip") ? done(performance.now()) : requestAnimationFrame(look);
          look();
        })));
        paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
        sizes.push(await nodes(page));
        await page.close();
        await timed(heads, `/v1/runs/${id}`);
        await timed(views, `/v1/runs/${id}/view?limit=60`);
        await timed(finds, `/v1/runs/${id}/view?limit=60&find=no+event+says+this`);
      });
      const of = `of a run of ${events.toLocaleString("en")} events`;
      report(`first paint ${of}`, 500, median(paints.slice(1)), "ms");
      report(`usable, ${of}`, 1000, median(usable.slice(1)), "ms");
      report(`nodes ${of}`, 600, Math.max(...sizes), "nodes");
      report(`GET /v1/runs/{id} ${of}`, events > 12_000 ? null : 20, median(heads.slice(1)), "ms");
      report(`.../view, the last 60 entries ${of}`, 30, median(views.slice(1)), "ms");
      report(`a found text ${of}`, 500, median(finds.slice(1)), "ms");
      if (events === 12_000) {
        const page = await watched(context);
        await page.goto(`${open}/#/runs/${id}`);
        await page.locator("details.cycle[open]").waitFor();
        for (let i = 0; i < 4; i++) await page.getByRole("button", { name: /earlier of/ }).first().click();
        await page.mouse.move(600, 400);
        const measure = page.evaluate(() => window.frames(5000));
        for (let i = 0; i < 80; i++) { await page.mouse.wheel(0, i < 40 ? -400 : 400); await pause(40); }
        report("scrolling, p95 of a frame", 50, share(await measure, 0.95), "ms");
        await page.close();
      }
    }
  },

  async "what is wide is opened"(context) {
    const wide = [
      ["a cycle of 256 calls", { agent: "many", input: "go" }, "details.cycle:not([open]) > summary", "details.call"],
      ["a step of 10,000 items", { workflow: "items", input: "go" }, "details.step > summary", "details.step details"],
    ];
    for (const [what, body, click, there] of wide) {
      const id = await begin(body);
      await ended(id);
      const sizes = [], tasks = [];
      const times = await several(async () => {
        const page = await watched(context);
        await page.goto(`${open}/#/runs/${id}`);
        await page.locator(click).first().waitFor();
        await longest(page);
        const time = await opened(page, click, there);
        tasks.push(await longest(page));
        sizes.push(await nodes(page));
        await page.close();
        return time;
      });
      report(`${what} is opened`, 100, median(times), "ms");
      report(`${what} is opened, the longest task`, 100, median(tasks.slice(1)), "ms");
      report(`${what}, nodes`, 600, Math.max(...sizes), "nodes");
    }
    const tasks = await several(async () => {
      const page = await watched(context);
      await page.goto(`${open}/#/start?file=wide`);
      await panel(page, "Its steps").waitFor();
      await longest(page);
      await panel(page, "Its steps").locator("> summary").click();
      await page.getByRole("button", { name: /^part0/ }).focus();
      for (let i = 0; i < 12; i++) await page.keyboard.press("ArrowDown");
      const task = await longest(page);
      await page.close();
      return task;
    });
    report("a plan of 300 steps, the longest task", 100, median(tasks), "ms");
  },

  async "a fast stream"(context) {
    const page = await watched(context);
    const id = await begin({ agent: "flood", input: "go" });
    const began = Date.now();
    await page.goto(`${open}/#/runs/${id}`);
    await page.getByText("live", { exact: true }).waitFor();
    await longest(page);
    await pause(15_000);
    await context.setOffline(true); // no new connection; the ones that stand are closed by the server of the test
    await fetch(`${process.env.PAWL_CONTROL}/cut`, { method: "POST" });
    await page.getByText("Connection lost").waitFor();
    await context.setOffline(false);
    const run = await ended(id);
    const seconds = (Date.now() - began) / 1000;
    await page.locator("h1 .chip", { hasText: "completed" }).waitFor();
    report("a fast stream, its length", null, seconds, "s");
    report("a fast stream, its events", null, run.seq / seconds, "events/s");
    report("a fast stream, the longest task", 100, await longest(page), "ms");
    const wanted = [];
    let top = [];
    for (let before = ""; ;) {
      const some = await api(`/v1/runs/${id}/view?limit=500&before=${before}`);
      top = [...some.items, ...top];
      if (!(before = some.before ?? "")) break;
    }
    for (const { id: cycle } of top) wanted.push(...(await api(`/v1/runs/${id}/view?limit=500&parent=${cycle}`)).items.filter(e => e.kind === "call").map(e => `e${e.id}`));
    for (const cycle of (await page.locator("details.cycle").all()).slice(0, -1)) {
      if (!await cycle.evaluate(d => d.open)) await cycle.locator("> summary").click();
      await cycle.locator("details.call").first().waitFor();
      await cycle.evaluate(async d => { for (let more; (more = d.querySelector(".timeline > button")); await new Promise(requestAnimationFrame)) more.click(); });
    }
    const shown = await page.locator("details.call").evaluateAll(all => all.map(d => d.id));
    report("a fast stream, calls lost", 0, wanted.filter(w => !shown.includes(w)).length, `of ${wanted.length}`);
    report("a fast stream, calls doubled", 0, shown.length - new Set(shown).size, `of ${wanted.length}`);
    await page.close();
  },

  async "a decision in another tab"(context) {
    const other = await context.newPage();
    await other.goto(`${open}/#/questions`);
    const page = await context.newPage();
    await page.goto(`${open}/#/questions`);
    const times = [];
    for (let i = 0; i < 41; i++) {
      const id = await begin({ agent: "asks", input: "go" });
      await asks(id);
      for (const tab of [page, other]) await tab.getByRole("region", { name: `of run ${id}` }).waitFor();
      const gone = other.evaluate(id => new Promise(done => {
        const look = () => document.querySelector(`section.question[aria-label$="of run ${id}"] [data-key=a]`) ? requestAnimationFrame(look) : done(performance.timeOrigin + performance.now());
        look();
      }), id);
      const clicked = await page.evaluate(id => {
        document.querySelector(`section.question[aria-label$="of run ${id}"] [data-key=a]`).click();
        return performance.timeOrigin + performance.now();
      }, id);
      times.push(await gone - clicked);
      await other.getByRole("status", { name: `of run ${id}` }).getByRole("button", { name: "Dismiss" }).click();
      await ended(id);
    }
    report("decision to visible in another tab, p95 of 40", 300, share(times.slice(1), 0.95), "ms");
    await page.close();
    await other.close();
  },

  async "an idle tab"(context) {
    const id = await begin({ agent: "asks", input: "go" });
    await asks(id);
    const asked = {};
    const tabs = [];
    for (const place of ["", "questions", `runs/${id}`, `runs/${id}/plan`, `runs/${id}/timeline`, `runs/${id}/events`]) {
      const tab = await (await context.browser().newContext()).newPage(); // a browser opens six connections to a server
      tab.on("request", () => { asked[place] = (asked[place] ?? 0) + 1; });
      await tab.goto(`${open}/#/${place}`);
      tabs.push(tab);
    }
    await pause(5000);
    for (const place in asked) asked[place] = 0;
    await pause(60_000 * idleMinutes);
    report("an idle tab, requests in a minute", 1, Math.max(...Object.values(asked)) / idleMinutes, "requests");
    for (const tab of tabs) await tab.context().close();
    await api(`/v1/runs/${id}/cancel`, {});
  },
};

(async () => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-renderer-backgrounding", "--disable-background-timer-throttling"],
  });
  for (const [name, measure] of Object.entries(figures)) {
    if (!new RegExp(process.env.PAWL_SCENE ?? "").test(name)) continue;
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    context.setDefaultTimeout(patience);
    await measure(context);
    await context.close();
  }
  await browser.close();
})();
