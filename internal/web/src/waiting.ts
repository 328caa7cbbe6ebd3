import { effect, signal } from "@preact/signals";
import { get } from "./api";
import type { Page, Question } from "./types";

/** waiting is how many questions wait for a person, as far as we know. */
export const waiting = signal(0);

const title = signal("Pawl");

/** titled names the page. The title of the tab begins with how much waits. */
export function titled(text: string): void { title.value = text; }

effect(() => { document.title = (waiting.value > 0 ? `(${waiting.value}) ` : "") + title.value; });

/** questions are those of all runs. */
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

/** countWaiting counts once a minute, also in a tab that is hidden: its title is seen. */
export function countWaiting(): void {
  clearTimeout(timer);
  questions().catch(() => { /* the page says that the server is away */ }).finally(() => {
    clearTimeout(timer);
    timer = setTimeout(countWaiting, pause);
  });
}
