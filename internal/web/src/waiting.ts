import { effect, signal } from "@preact/signals";
import { get } from "./api";
import type { Page, Question } from "./types";

/** waiting is the number of known open questions. */
export const waiting = signal(0);

const title = signal("Pawl");

/** titled sets the title of the page. The title of the tab begins with the number of open questions. */
export function titled(text: string): void { title.value = text; }

effect(() => { document.title = (waiting.value > 0 ? `(${waiting.value}) ` : "") + title.value; });

/** questions holds the open questions of all runs. */
export async function questions(): Promise<Question[]> {
  const all: Question[] = [];
  for (let cursor = "", i = 0; i < 10; i++) {
    const page = await get<Page<Question>>(`/v1/questions?limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    all.push(...page.items);
    if (!(cursor = page.next ?? "")) break;
  }
  waiting.value = all.length;
  return all;
}

const pause = 60_000;
let timer: ReturnType<typeof setTimeout> | undefined;

/** countWaiting counts once a minute, even in a hidden tab, whose title is visible. */
export function countWaiting(): void {
  clearTimeout(timer);
  questions().catch(() => { /* the page says that the server is away */ }).finally(() => {
    clearTimeout(timer);
    timer = setTimeout(countWaiting, pause);
  });
}
