import { computed, effect, signal } from "@preact/signals";
import { asProblem, get, type Problem, sleep } from "./api";
import { follow } from "./feed";
import type { Page, Question } from "./types";

/** Waiting is an open question, or a closed one that stays until it is dismissed. became is how it was closed. */
export interface Waiting { question: Question; became?: string }

/** questions holds the questions of all runs, null until they are loaded. */
export const questions = signal<Waiting[] | null>(null);

/** problem is why the questions could not be loaded. */
export const problem = signal<Problem | null>(null);

/** waiting is the number of open questions. */
export const waiting = computed(() => questions.value?.filter(w => w.became === undefined).length ?? 0);

const title = signal("Pawl");

/** titled sets the title of the page. The title of the tab begins with the number of open questions. */
export function titled(text: string): void { title.value = text; }

effect(() => {
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  const n = waiting.value;
  if (icon) icon.href = n > 0 ? `/assets/icon-waits-${n > 9 ? "more" : n}.svg` : icon.dataset.plain ??= icon.href;
});

/** mayNotify is whether the user lets the page show notifications: "granted", "denied" or "default". */
export const mayNotify = signal<string>("Notification" in window ? Notification.permission : "denied");

/** askToNotify asks the user. */
export async function askToNotify(): Promise<void> { mayNotify.value = await Notification.requestPermission(); }

/** notify shows that a run asks, while the page is out of view. It contains nothing of the question's subject. */
function notify(q: Question): void {
  if (mayNotify.value !== "granted" || !document.hidden) return;
  const n = new Notification(`Pawl: ${waiting.value} ${waiting.value === 1 ? "question waits" : "questions wait"}`, { body: `Run ${q.path[0] ?? q.run} asks.`, tag: "pawl" });
  n.onclick = () => {
    focus();
    location.hash = "#/questions";
    n.close();
  };
}

effect(() => { document.title = (waiting.value > 0 ? `(${waiting.value}) ` : "") + title.value; });

const keyOf = (run: string, id: string) => `${run} ${id}`;
const of = (q: Question) => keyOf(q.run, q.id);
const decided = new Map<string, string>();
const ours = new Set<string>();
const cards = new Map<string, Question>();

/** once identifies a question among those that ask for the same again. */
const once = (q: Question) => `${of(q)} ${q.seq ?? 0}`;

/** cardShown takes note of a card. The state of a run can show it before the questions are loaded. */
export function cardShown(q: Question): void {
  if (ours.has(once(q)) || questions.value?.some(w => of(w.question) === of(q))) return;
  cards.set(of(q), q);
  refresh();
}

/** decidedHere removes a question that was decided in this tab. */
export function decidedHere(q: Question): void {
  ours.add(once(q));
  refresh();
}

/** dismiss removes a closed question. */
export function dismiss(q: Question): void {
  questions.value = questions.value?.filter(w => w.question !== q) ?? null;
}

const pause = 300;
let reading = false;
let again = false;

/** refresh loads the questions, and once more if it is called meanwhile. */
export function refresh(): void {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  read().then(() => { problem.value = null; }, err => { problem.value = asProblem(err); })
    .then(() => again ? sleep(pause, new AbortController().signal) : undefined)
    .then(() => {
      reading = false;
      if (!again) return;
      again = false;
      refresh();
    });
}

async function read(): Promise<void> {
  const shown = [...cards.values()]; // the answer can be older than a card that comes later
  const all: Question[] = [];
  for (let cursor = "", i = 0; i < 10; i++) {
    const page = await get<Page<Question>>(`/v1/questions?limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    all.push(...page.items);
    if (!(cursor = page.next ?? "")) break;
  }
  const before = [...questions.value ?? []];
  for (const question of shown) {
    cards.delete(of(question));
    if (!before.some(w => of(w.question) === of(question))) before.push({ question });
  }
  const known = new Map(all.map(q => [of(q), q]));
  const kept: Waiting[] = [];
  for (const { question, became } of before) {
    const key = of(question);
    const now = known.get(key);
    known.delete(key);
    if (now && (became === undefined || now.seq !== question.seq)) kept.push({ question: now }); // an answer can be older than a decision
    else if (!ours.has(once(question))) kept.push({ question, became: became ?? decided.get(key) ?? "It is closed." });
  }
  const first = questions.value === null;
  const [newest] = known.values();
  questions.value = [...[...known.values()].map(question => ({ question })), ...kept];
  if (newest && !first) notify(newest);
}

/** watchQuestions keeps the questions up to date. */
export function watchQuestions(): void {
  follow({
    begins: refresh,
    question: c => {
      const key = keyOf(c.run, c.id ?? "");
      if (c.approver) {
        const became = `${c.approver}: ${c.decision}`;
        decided.set(key, became);
        questions.value = questions.value?.map(w => of(w.question) === key && !ours.has(once(w.question)) ? { became, ...w } : w) ?? null;
      }
      refresh();
    },
  });
}
