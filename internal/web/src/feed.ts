import { signal } from "@preact/signals";
import { away, type Connection, listen, type Problem, sleep } from "./api";
import type { QuestionChange, Removed, Run } from "./types";

/** Reader receives changes of runs. */
export interface Reader {
  /** begins is called when a stream starts without a place: data loaded before may be out of date. */
  begins?(): void;
  run?(run: Run): void;
  question?(change: QuestionChange): void;
  removed?(run: string): void;
}

/** connection is the state of the stream of runs, of which a tab has one. */
export const connection = signal<{ state: Connection; why?: Problem }>({ state: "connecting" });

const readers = new Set<Reader>();
let current: AbortController | null = null;

/** follow adds a reader until the returned function is called. If the stream is live, begins is called at once. */
export function follow(reader: Reader): () => void {
  readers.add(reader);
  if (connection.value.state === "live") reader.begins?.();
  return () => { readers.delete(reader); };
}

/** startFeed opens the stream of this tab, and closes an earlier one. */
export function startFeed(): void {
  current?.abort();
  const abort = current = new AbortController();
  void read(abort.signal);
}

async function read(abort: AbortSignal): Promise<void> {
  while (!abort.aborted) {
    let refused: Problem | undefined;
    await listen<Run | QuestionChange | Removed>("/v1/runs", 0, abort, events => {
      for (const { type, data } of events) {
        for (const reader of readers) {
          if (type === "begin") reader.begins?.();
          if (type === "run") reader.run?.(data as Run);
          if (type === "question") reader.question?.(data as QuestionChange);
          if (type === "removed") reader.removed?.((data as Removed).run);
        }
      }
    }, (state, why) => {
      refused = state === "lost" ? why : undefined;
      connection.value = why ? { state, why } : { state };
      away.value = state === "lost" && !(why && why.status >= 400 && why.status < 500); // a server that refuses is there
    });
    if (refused?.status === 401 || refused?.status === 403) return;
    await sleep(2000, abort); // the place may be of another journal: start without it
  }
}
