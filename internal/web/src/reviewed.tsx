import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Changes } from "./changes";
import { type Pass, type Passes, treeBefore } from "./refine";
import { TreeDiff } from "./trees";

/** ReviewedFiles shows the files that an iteration changed, above its answer. */
export function ReviewedFiles({ run, step, iteration }: { run: string; step: string; iteration: number }) {
  const [of, setOf] = useState<{ pass?: Pass | undefined; before: string } | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    get<Passes>(`/v1/runs/${run}/iterations`, gone.signal).then(({ items }) => {
      const pass = items.find(p => p.iteration === iteration && (!step || p.step === step));
      setOf({ pass, before: pass ? treeBefore(pass, items) : "" });
    }, () => setOf({ before: "" }));
    return () => gone.abort();
  }, [run, step, iteration]);
  if (!of) return <p class="empty">Reading the changes…</p>;
  const calls = (open: boolean) => <Changes run={of.pass?.run ?? run} open={open} />;
  if (!of.pass?.tree) return calls(true);
  return <TreeDiff run={run} from={of.before} to={of.pass.tree} label={`Files of iteration ${iteration}`} also={compared => calls(!compared)} />;
}
