import { useEffect, useState } from "preact/hooks";
import { Canvas, type Node } from "./canvas";
import { follow } from "./feed";
import { ProblemBox } from "./parts";
import { useLoaded } from "./shared";
import type { ViewProps } from "./tabs";

const pause = 500;

/** PlanView shows the plan of a run, and what the run did of it. */
export default function PlanView({ run }: ViewProps) {
  const [passes, setPasses] = useState(new Map<string, string>());
  const [seq, setSeq] = useState(0);
  const [nodes, setNodes] = useState<Node[] | null>(null);
  const at = [...passes.values()].join(" ");
  const { value, problem } = useLoaded<{ nodes: Node[] }>(`/v1/runs/${run.id}/plan?${new URLSearchParams({ at })}${seq ? `#${seq}` : ""}`);
  useEffect(() => { if (value) setNodes(value.nodes); }, [value]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = follow({ run: changed => { if (changed.id === (run.root || run.id)) timer ??= setTimeout(() => { timer = undefined; setSeq(changed.seq); }, pause); } });
    return () => { stop(); clearTimeout(timer); };
  }, [run.id]);
  if (problem) return <ProblemBox problem={problem} />;
  if (!nodes) return <p class="empty">Reading the plan…</p>;
  if (nodes.length === 0) return <p class="empty">This run is one agent, and has no plan. What it did is its plan.</p>;
  return <Canvas nodes={nodes} run={run.id} choose={(loop, pass) => setPasses(new Map(passes).set(loop.id, loop.loop!.items ? `${loop.id}[${pass}]` : `${loop.id}.${pass}`))} />;
}
