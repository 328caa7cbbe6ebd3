import { effect, signal } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { away, get, locked, principal, takeToken, token, useToken } from "./api";
import { startFeed } from "./feed";
import { Keys } from "./keys";
import { lazily } from "./lazy";
import { ProblemBox } from "./parts";
import { RunPage } from "./run";
import { QuestionsPage, RunsPage } from "./runs";
import { TabPage } from "./tabs";
import type { Principal } from "./types";
import { waiting, watchQuestions } from "./waiting";
import "./style.css";

const ForkPage = lazily(() => import("./fork").then(m => m.ForkPage));
const StartPage = lazily(() => import("./start").then(m => m.StartPage));

const place = signal(location.hash);
addEventListener("hashchange", () => {
  const given = takeToken();
  if (given) useToken(given);
  place.value = location.hash;
});

function App() {
  const [at = "", query = ""] = place.value.replace(/^#\/?/, "").split("?");
  const first = useRef(true);
  const [, run, entry, tab, rest] = /^runs\/([^/]+)(?:\/e\/(\d+)|\/([a-z]+)(?:\/([^/]+))?)?$/.exec(at) ?? [];
  const [, forked, from] = /^runs\/([^/]+)\/fork\/(\d+)$/.exec(at) ?? [];
  const asked = new URLSearchParams(query);
  const page = `${run ?? at}/${tab ?? ""}`;
  useEffect(() => {
    if (!first.current) {
      scrollTo(0, 0);
      document.querySelector<HTMLElement>("main")?.focus();
    }
    first.current = false;
  }, [page]);
  return (
    <>
      <a class="skip" href="#main" onClick={e => { e.preventDefault(); document.querySelector<HTMLElement>("main")?.focus(); }}>Skip to the content</a>
      <nav class="bar" aria-label="Pages">
        <a class="brand" href="#/">Pawl</a>
        <a href="#/" aria-current={at === "" ? "page" : undefined}>Runs</a>
        <a href="#/questions" aria-current={at === "questions" ? "page" : undefined}>Questions{waiting.value > 0 && <> <span class="chip wait">{waiting.value}</span></>}</a>
        <a href="#/start" aria-current={at === "start" ? "page" : undefined}>Start</a>
        <span class="who">{principal.value && `${principal.value.name} (${principal.value.role})`}</span>
        {token.value && !locked.value && <button type="button" onClick={() => { useToken(""); location.reload(); }}>Forget the token</button>}
      </nav>
      {locked.value ? <Unlock /> : forked && from ? <ForkPage key={at} run={forked} entry={from} /> : run && tab ? <TabPage key={`${run}/${tab}`} id={run} at={tab} rest={rest ?? ""} /> : run ? <RunPage key={run} id={run} entry={entry ?? ""} /> : at === "start" ? <StartPage key={place.value} name={asked.get("file") ?? ""} like={asked.get("like") ?? ""} /> : at === "questions" ? <QuestionsPage /> : <RunsPage place={place.value} />}
      <Keys />
      <footer><a href="/assets/LICENSES.txt">Licences</a></footer>
    </>
  );
}

/** Unlock asks for a token. */
function Unlock() {
  const given = useRef<HTMLInputElement>(null);
  return (
    <main id="main" tabIndex={-1} class="unlock">
      <h1>A token is needed</h1>
      {token.value && locked.value && <ProblemBox problem={locked.value} />}
      <p>This server requires a token. <code>pawl token show</code>, on the server's machine, prints the token of this start; where the server has a file of tokens, <code>pawl token create NAME --role viewer</code> makes one. This tab keeps it until it is closed.</p>
      <form onSubmit={e => { e.preventDefault(); useToken(given.current!.value.trim()); }}>
        <label><span>Token</span><input ref={given} type="password" autocomplete="off" required /></label>
        <button type="submit" class="good">Use it</button>
      </form>
    </main>
  );
}

// The principal depends on the token.
effect(() => {
  token.value;
  if (locked.value) return;
  startFeed();
  get<Principal>("/v1/principal").then(p => { principal.value = p; }, () => { principal.value = null; });
});

effect(() => { document.body.classList.toggle("away", away.value); });

watchQuestions();
render(<App />, document.getElementById("app")!);
