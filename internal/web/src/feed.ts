import { signal } from "@preact/signals";
import { type Connection, listen, type Problem, sleep } from "./api";
import type { QuestionChange, Run } from "./types";

/** Reader is told of changes of runs. */
export interface Reader {
  /** begins is called when changes come in from now on: what was read before may be old. */
  begins?(): void;
  run?(run: Run): void;
  question?(change: QuestionChange): void;
}

/** connection is the state of the tab's one stream of runs. */
export const connection = signal<{ state: Connection; why?: Problem }>({ state: "connecting" });

const readers = new Set<Reader>();
let current: AbortController | null = null;

/** follow adds a reader until the function that it returns is called. A stream that is there already begins for it at once. */
export function follow(reader: Reader): () => void {
  readers.add(reader);
  if (connection.value.state === "live") reader.begins?.();
  return () => { readers.delete(reader); };
}

/** startFeed opens the stream of this tab anew. */
export function startFeed(): void {
  current?.abort();
  const abort = current = new AbortController();
  void read(abort.signal);
}

async function read(abort: AbortSignal): Promise<void> {
  while (!abort.aborted) {
    let refused: Problem | undefined;
    await listen<Run | QuestionChange>("/v1/runs", 0, abort, events => {
      for (const { type, data } of events) {
        for (const reader of readers) {
          if (type === "begin") reader.begins?.();
          if (type === "run") reader.run?.(data as Run);
          if (type === "question") reader.question?.(data as QuestionChange);
        }
      }
    }, (state, why) => {
      refused = state === "lost" ? why : undefined;
      connection.value = why ? { state, why } : { state };
    });
    if (refused?.status === 401 || refused?.status === 403) return;
    await sleep(2000, abort); // the place is one of another journal, perhaps: begin without it
  }
}
