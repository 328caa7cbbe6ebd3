import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const shown = signal(false);

/** acts maps keys to actions. A page adds its own while it is shown. */
const acts = new Map<string, { does: string; act: () => void }>();

const cards = () => [...document.querySelectorAll<HTMLElement>("section.question")];
const card = () => document.activeElement?.closest<HTMLElement>("section.question") ?? null;

/** step moves the focus to the card before or after the focused one. */
function step(by: number): void {
  const all = cards();
  const at = all.indexOf(card()!);
  all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
}

/** press presses a button of the focused card, so a key can only decide a visible question. */
const press = (which: string) => () => card()?.querySelector<HTMLElement>(`button[data-key="${which}"]`)?.click();

acts.set("j", { does: "the next question", act: () => step(1) });
acts.set("k", { does: "the question before", act: () => step(-1) });
acts.set("a", { does: "approve the question that has the focus", act: press("a") });
acts.set("r", { does: "reject it, with a reason", act: press("r") });
acts.set("e", { does: "edit its arguments", act: press("e") });
acts.set("?", { does: "show the keys, or hide them", act: () => { shown.value = !shown.value; } });

/** useKey binds a key while a page is shown. */
export function useKey(key: string, does: string, act: () => void): void {
  useEffect(() => {
    acts.set(key, { does, act });
    return () => { acts.delete(key); };
  });
}

addEventListener("keydown", e => {
  if (e.key === "Escape") shown.value = false;
  if (e.ctrlKey || e.metaKey || e.altKey || e.repeat || (e.target as HTMLElement).closest?.("input, textarea, select")) return;
  const found = acts.get(e.key);
  if (!found) return;
  e.preventDefault();
  found.act();
});

/** Keys lists the keys. */
export function Keys() {
  if (!shown.value) return null;
  return (
    <section class="keys" role="dialog" aria-label="Keys">
      <dl>{[...acts].map(([key, { does }]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>)}</dl>
      <button type="button" onClick={() => { shown.value = false; }}>Close</button>
    </section>
  );
}
