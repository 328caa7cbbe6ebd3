import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { money, pretty, span, tokens, visible } from "./format";
import { type Box, layOut } from "./layout";
import type { Cost, EntryState, Usage } from "./types";

interface Verdict { by: string; said: string; holds?: boolean; run?: string }

interface Progress { items: boolean; of: number; passes: number; done: number; failed: number; running: number; at: number; verdicts?: Verdict[] }

/** Node is a step of a plan, at one pass of each loop around it. */
export interface Node {
  id: string; step: string; parent?: string; after?: string[]; about?: string[]; state?: EntryState; line?: string; run?: string; entry?: string;
  seconds?: number; usage?: Usage; cost?: Cost; condition?: { expression: string; value?: unknown; error?: string }; loop?: Progress;
}

/** Item is a node in the tree of a plan. Its key is the same at every pass. */
interface Item { key: string; node: Node; parent: Item | null; inner: Item[] }

interface Drawn { item: Item; x: number; y: number; width: number; height: number }

const nodeWidth = 190;
const nodeHeight = 62;
const headHeight = 74;
const inset = 14;
const margin = 80;

export const tones: { [state: string]: string } = {
  running: "busy", waiting: "wait", done: "good", failed: "bad", denied: "bad", rejected: "bad", skipped: "still", cancelled: "still",
};

/** itemsOf returns the nodes as a tree, and all its items in order. */
function itemsOf(nodes: Node[]): { roots: Item[]; all: Item[] } {
  const byID = new Map<string, Item>();
  const roots: Item[] = [];
  for (const node of nodes) {
    const parent = byID.get(node.parent ?? "") ?? null;
    const list = parent ? parent.inner : roots;
    const item: Item = { key: `${parent?.key ?? ""}/${parent?.node.loop && !node.about ? "pass" : node.step}`, node, parent, inner: [] };
    list.push(item);
    byID.set(node.id, item);
  }
  return { roots, all: [...byID.values()] };
}

/** drawnAt lays a graph out, with the graphs in its boxes, and returns where everything is. */
function drawnAt(items: Item[]): { drawn: Drawn[]; width: number; height: number } {
  const inner = new Map(items.filter(i => i.inner.length > 0).map(i => [i.key, drawnAt(i.inner)]));
  const boxes = items.map((i): Box => {
    const within = inner.get(i.key);
    return {
      id: i.node.id, after: i.node.after ?? [],
      width: within ? Math.max(nodeWidth, within.width + 2 * inset) : nodeWidth, height: within ? headHeight + within.height + inset : nodeHeight,
    };
  });
  const laid = layOut(boxes);
  const drawn: Drawn[] = [];
  items.forEach((item, n) => {
    const { width, height } = boxes[n]!;
    const { x, y } = laid.places.get(item.node.id) ?? { x: 0, y: 0 };
    drawn.push({ item, x, y, width, height });
    for (const d of inner.get(item.key)?.drawn ?? []) drawn.push({ ...d, x: d.x + x + inset, y: d.y + y + headHeight });
  });
  return { drawn, width: laid.width, height: laid.height };
}

/** taken returns the class of an edge to a node. */
function taken(to: Node | undefined): string { return to?.state === "skipped" ? "untaken" : to?.state ? "taken" : ""; }

/** linesOf returns the edges between the drawn nodes. */
function linesOf(drawn: Drawn[]) {
  const byID = new Map(drawn.map(d => [d.item.node.id, d]));
  return drawn.flatMap(to => (to.item.node.after ?? []).flatMap(id => {
    const from = byID.get(id);
    return from ? [{ key: `${from.item.key}>${to.item.key}`, to: to.item.key, x1: from.x + from.width / 2, y1: from.y + from.height, x2: to.x + to.width / 2, y2: to.y }] : [];
  }));
}

/** wordsOf says what a node is and how far it is, in words. */
function wordsOf({ node: n }: Item): string {
  const loop = n.loop && n.loop.passes > 0 && `${n.loop.done} of ${n.loop.of} done${n.loop.failed ? `, ${n.loop.failed} failed` : ""}${n.loop.running ? `, ${n.loop.running} running` : ""}`;
  return [n.step, n.state, loop, n.after?.length && `after ${n.after.join(" and ")}`, n.state === "skipped" && "not taken"].filter(Boolean).map(w => visible(String(w))).join(", ");
}

/** Canvas draws a plan as a graph or, on demand, as a list. choose shows another pass of a loop. */
export function Canvas({ nodes, run, choose }: { nodes: Node[]; run?: string; choose?: (loop: Node, pass: number) => void }) {
  const { roots, all } = useMemo(() => itemsOf(nodes), [nodes]);
  const [chosen, setChosen] = useState("");
  const [asList, setAsList] = useState(false);
  const selected = all.find(i => i.key === chosen) ?? all[0];
  if (!selected) return <p class="empty">There are no steps.</p>;
  const walk = (e: KeyboardEvent) => {
    const next = nextTo(selected, all, e.key);
    if (!next) return;
    e.preventDefault();
    setChosen(next.key);
  };
  return (
    <section aria-label="Plan">
      <div class="acts" role="group" aria-label="Form of the plan">
        <button type="button" aria-pressed={!asList} onClick={() => setAsList(false)}>as a graph</button>
        <button type="button" aria-pressed={asList} onClick={() => setAsList(true)}>as a list</button>
      </div>
      {asList ? <List items={roots} chosen={selected} choose={setChosen} walk={walk} /> : <Graph roots={roots} all={all} chosen={selected} choose={setChosen} walk={walk} />}
      <Details item={selected} run={run} choose={choose} />
    </section>
  );
}

/** nextTo returns the item to which an arrow key leads along the edges of the plan. */
function nextTo(at: Item, all: Item[], key: string): Item | undefined {
  const beside = (at.parent ? at.parent.inner : all.filter(i => !i.parent));
  const follow = (i: Item): Item | undefined => all.find(o => o.parent === i.parent && o.node.after?.includes(i.node.id)) ?? (i.parent ? follow(i.parent) : undefined);
  switch (key) {
    case "ArrowDown": return at.inner[0] ?? follow(at);
    case "ArrowUp": return all.find(o => o.parent === at.parent && at.node.after?.includes(o.node.id)) ?? at.parent ?? undefined;
    case "ArrowRight": return beside[beside.indexOf(at) + 1];
    case "ArrowLeft": return beside[beside.indexOf(at) - 1];
  }
  return undefined;
}

interface Shown { chosen: Item; choose: (key: string) => void; walk: (e: KeyboardEvent) => void }

/** Graph draws those nodes and edges that are in view. */
function Graph({ roots, all, chosen, choose, walk }: Shown & { roots: Item[]; all: Item[] }) {
  const shape = all.map(i => `${i.key}<${i.node.after?.join()}`).join("\n");
  const { drawn, width, height } = useMemo(() => drawnAt(roots), [shape]);
  const lines = useMemo(() => linesOf(drawn), [drawn]);
  const now = new Map(all.map(i => [i.key, i]));
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ x: 0, y: 0, width: 1200, height: 700 });
  const focuses = useRef(false);
  useEffect(() => {
    const el = box.current!;
    let due = 0;
    const look = () => { due ||= requestAnimationFrame(() => { due = 0; setView({ x: el.scrollLeft, y: el.scrollTop, width: el.clientWidth, height: el.clientHeight }); }); };
    const sizes = new ResizeObserver(look);
    sizes.observe(el);
    const first = drawn.find(d => d.item.inner.length === 0);
    if (first) el.scrollLeft = first.x + first.width / 2 - el.clientWidth / 2;
    el.addEventListener("scroll", look, { passive: true });
    return () => { sizes.disconnect(); cancelAnimationFrame(due); };
  }, []);
  useLayoutEffect(() => {
    if (!focuses.current) return;
    focuses.current = false;
    box.current!.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
  }, [chosen.key]);
  const sees = (x: number, y: number, right: number, bottom: number) =>
    right > view.x - margin && x < view.x + view.width + margin && bottom > view.y - margin && y < view.y + view.height + margin;
  const shown = drawn.filter(d => d.item.key === chosen.key || sees(d.x, d.y, d.x + d.width, d.y + d.height));
  const edges = lines.filter(l => sees(Math.min(l.x1, l.x2), l.y1, Math.max(l.x1, l.x2), l.y2));
  return (
    <div class="canvas" ref={box} onKeyDown={e => { focuses.current = true; walk(e); }}>
      <div class="plane" style={{ width: `${width + 2 * inset}px`, height: `${height + 2 * inset}px` }}>
        <svg aria-hidden="true" width={width + 2 * inset} height={height + 2 * inset}>
          {edges.map(e => <path key={e.key} class={`edge ${taken(now.get(e.to)?.node)}`} d={`M${e.x1} ${e.y1}C${e.x1} ${e.y1 + 24} ${e.x2} ${e.y2 - 24} ${e.x2} ${e.y2}`} transform={`translate(${inset} ${inset})`} />)}
        </svg>
        {shown.map(d => {
          const item = now.get(d.item.key)!;
          return (
            <button
              key={d.item.key} type="button" class={`node ${tones[item.node.state ?? ""] ?? ""} ${item.inner.length > 0 ? "holds" : ""}`} aria-pressed={item.key === chosen.key}
              tabIndex={item.key === chosen.key ? 0 : -1} style={{ left: `${d.x + inset}px`, top: `${d.y + inset}px`, width: `${d.width}px`, height: `${d.height}px` }} onClick={() => choose(item.key)}
            >
              <span class="said">{wordsOf(item)}</span>
              <Label item={item} />
            </button>
          );
        })}
      </div>
    </div>
  );
}

function Label({ item: { node: n } }: { item: Item }) {
  return (
    <span class="label" aria-hidden="true">
      {n.loop && <LoopRing loop={n.loop} />}
      <span><strong>{visible(n.step)}</strong><span class="gist">{visible(n.about?.[0] ?? n.line ?? "")}</span><span class="gist">{[n.state, money(n.cost)].filter(Boolean).join(" · ")}</span></span>
    </span>
  );
}

/** LoopRing shows how many passes of a loop are done, failed and running. */
function LoopRing({ loop: l }: { loop: Progress }) {
  const r = 17;
  const round = 2 * Math.PI * r;
  const of = Math.max(l.of, l.passes, 1);
  let from = 0;
  return (
    <span class="ring">
      <svg viewBox="0 0 40 40">
        <circle class="track" cx="20" cy="20" r={r} />
        {([["done", l.done], ["failed", l.failed], ["running", l.running]] as const).filter(([, n]) => n > 0).map(([kind, n]) => {
          const arc = <circle key={kind} class={kind} cx="20" cy="20" r={r} stroke-dasharray={`${n / of * round} ${round}`} stroke-dashoffset={`${-from / of * round}`} />;
          from += n;
          return arc;
        })}
      </svg>
      <span class="badge">{l.done + l.failed}/{l.of}</span>
    </span>
  );
}

/** List is the plan as a list, with the same words. */
function List({ items, chosen, choose, walk }: Shown & { items: Item[] }) {
  return (
    <ul class="steps" onKeyDown={e => { if ((e.target as HTMLElement).closest("ul") === e.currentTarget) walk(e); }}>
      {items.map(i => (
        <li key={i.key}>
          <button type="button" class="plain" aria-pressed={i.key === chosen.key} onClick={() => choose(i.key)}>{wordsOf(i)}</button>
          {i.node.state && <span class={`chip ${tones[i.node.state]}`}>{i.node.state}</span>} <span class="gist">{visible(i.node.about?.join(", ") ?? "")} {money(i.node.cost)}</span>
          {i.inner.length > 0 && <List items={i.inner} chosen={chosen} choose={choose} walk={walk} />}
        </li>
      ))}
    </ul>
  );
}

/** Details says what a node did, with the value of its condition and the passes of its loop. */
function Details({ item: { node: n }, run, choose }: { item: Item; run: string | undefined; choose: ((loop: Node, pass: number) => void) | undefined }) {
  const loop = n.loop;
  const what = loop?.items ? "item" : "iteration";
  return (
    <section class="chosen" aria-label={`Step ${n.step}`}>
      <h2>{visible(n.step)} {n.state && <span class={`chip ${tones[n.state]}`}>{n.state}</span>}</h2>
      {n.about && <p class="why">{visible(n.about.join(", "))}</p>}
      {n.condition && <p>It runs if <code>{visible(n.condition.expression)}</code>{n.condition.error ? <>: <span class="wrong">{visible(n.condition.error)}</span></> : n.condition.value !== undefined && <>: it is <strong>{visible(pretty(n.condition.value))}</strong></>}</p>}
      {n.line && <p>{visible(n.line)}</p>}
      {loop && loop.passes > 0 && (
        <>
          <p>{loop.done} of {loop.of} done, {loop.failed} failed, {loop.running} running</p>
          {choose && (
            <div class="acts" role="group" aria-label={`Passes of ${n.step}`}>
              <button type="button" disabled={loop.at <= 0} onClick={() => choose(n, loop.at - 1)}>‹ before</button>
              <span role="status">{what} {loop.at + 1} of {loop.passes}</span>
              <button type="button" disabled={loop.at + 1 >= loop.passes} onClick={() => choose(n, loop.at + 1)}>next ›</button>
            </div>
          )}
          {loop.verdicts?.map((v, i) => <p key={i}><span class={`chip ${v.holds === undefined ? "still" : v.holds ? "good" : "bad"}`}>{v.by}{v.holds === undefined ? "" : v.holds ? ": holds" : ": does not hold"}</span> {visible(v.said)} {v.run && <a href={`#/runs/${v.run}`}>its run</a>}</p>)}
        </>
      )}
      <p class="facts">
        {n.usage && <span>{tokens(n.usage)}</span>}{n.cost && <span>{money(n.cost, n.usage)}</span>}{n.seconds !== undefined && <span>{span(1000 * n.seconds)}</span>}
        {run && n.entry && <a href={`#/runs/${run}/e/${n.entry}`}>what it did</a>}{n.run && <a href={`#/runs/${n.run}`}>run {n.run}</a>}
      </p>
    </section>
  );
}
