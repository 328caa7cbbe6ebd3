import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { follow } from "./feed";
import { titleOf } from "./format";
import { Standing } from "./parts";
import type { Run } from "./types";

/** Member is a run of a family of forks. */
interface Member extends Run { forkSeq?: number; changed?: string[] }

/** Forks shows the runs that share events with a run as branches of one tree. */
export function Forks({ run }: { run: string }) {
  const [members, setMembers] = useState<Member[]>([]);
  useEffect(() => {
    const gone = new AbortController();
    const read = () => void get<{ items: Member[] }>(`/v1/runs/${run}/forks`, gone.signal).then(f => setMembers(f.items), () => { /* the next change reads it again */ });
    read();
    const stop = follow({ run: r => { if (r.id === run || r.forkOf) read(); }, removed: () => read() });
    return () => { stop(); gone.abort(); };
  }, [run]);
  if (members.length < 2) return null;
  const depth = new Map<string, number>();
  for (const m of members) depth.set(m.id, m.forkOf ? (depth.get(m.forkOf) ?? 0) + 1 : 0);
  return (
    <nav class="forks" aria-label="Forks">
      <h2>Forks</h2>
      <ul>
        {members.map(m => (
          <li key={m.id} class={`depth-${Math.min(depth.get(m.id) ?? 0, 8)}`}>
            <a href={`#/runs/${m.id}`} aria-current={m.id === run ? "page" : undefined}>{titleOf(m)} <code>{m.id}</code></a> <Standing run={m} />
            {m.forkOf && <span class="facts"><a href={`#/runs/${m.forkOf}/e/${m.forkSeq ?? 1}`}>from event {m.forkSeq}</a>{m.changed && m.changed.length > 0 && <span>with another {m.changed.join(", ").replaceAll("_", " ")}</span>}</span>}
          </li>
        ))}
      </ul>
    </nav>
  );
}
