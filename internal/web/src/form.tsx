import { useId, useState } from "preact/hooks";
import { asProblem, type Problem } from "./api";
import { Act, ProblemBox } from "./parts";
import { pretty, visible } from "./format";

interface Choice { value: unknown; title: string }

/** Field is one field of a form, from its JSON Schema. */
interface Field {
  name: string; type: string; title: string; about: string; required: boolean; many: boolean;
  choices: Choice[]; initial: unknown;
}

interface Schema {
  type?: string; title?: string; description?: string; default?: unknown; enum?: unknown[]; enumNames?: string[];
  oneOf?: { const?: unknown; title?: string }[]; anyOf?: { const?: unknown; title?: string }[];
  items?: Schema; properties?: { [name: string]: Schema }; required?: string[];
}

function fieldsOf(schema: Schema): Field[] {
  return Object.entries(schema.properties ?? {}).map(([name, s]) => {
    const from = s.type === "array" ? s.items ?? {} : s;
    const titled = [...from.oneOf ?? [], ...from.anyOf ?? []].filter(c => c.const !== undefined);
    return {
      name, type: s.type ?? "", title: s.title ?? name, about: s.description ?? "", required: schema.required?.includes(name) ?? false,
      many: s.type === "array", initial: s.default ?? (s.type === "boolean" ? false : undefined),
      choices: [
        ...(from.enum ?? []).map((value, i) => ({ value, title: from.enumNames?.[i] ?? String(value) })),
        ...titled.map(c => ({ value: c.const, title: c.title ?? String(c.const) })),
      ],
    };
  });
}

/** FormCard shows the form that a call asks to fill in, or the page that it names. */
export function FormCard({ what, decide }: { what: { [key: string]: unknown }; decide: (verb: string, body: object) => Promise<unknown> }) {
  const fields = fieldsOf((what.schema ?? {}) as Schema);
  const [values, setValues] = useState<{ [name: string]: unknown }>(() => Object.fromEntries(fields.filter(f => f.initial !== undefined).map(f => [f.name, f.initial])));
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const url = typeof what.url === "string" ? what.url : "";
  const send = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await decide("approve", url ? {} : { input: values });
    } catch (err) {
      setProblem(asProblem(err));
    } finally {
      setBusy(false);
    }
  };
  const set = (name: string, value: unknown) => {
    const next = { ...values };
    if (value === undefined) delete next[name];
    else next[name] = value;
    setValues(next);
  };
  return (
    <form class="fields" onSubmit={e => { e.preventDefault(); void send(); }} noValidate>
      {url && <p>Go to the page of <strong>{visible(String(what.host ?? ""))}</strong> yourself, if you know and trust it: <code>{visible(url)}</code></p>}
      {fields.map(f => {
        const wrong = problem?.fields.find(w => w.field === f.name)?.message;
        return <FieldBox key={f.name} field={f} value={values[f.name]} wrong={wrong} set={v => set(f.name, v)} />;
      })}
      {problem && !problem.fields.some(w => fields.some(f => f.name === w.field)) && <ProblemBox problem={problem} />}
      <div class="acts">
        <button type="submit" class="good" disabled={busy}>{url ? "It is done" : "Answer"}</button>
        <Act name="Decline" kind="bad" wants="Why? The tool is told." last="Decline it" needed act={reason => decide("reject", { reason })} />
      </div>
    </form>
  );
}

function FieldBox({ field: f, value, wrong, set }: { field: Field; value: unknown; wrong: string | undefined; set: (v: unknown) => void }) {
  const id = useId();
  const more = { id, "aria-invalid": !!wrong, "aria-describedby": wrong ? `${id}-wrong` : undefined } as const;
  return (
    <div class="field">
      <label for={id}>{visible(f.title)}{f.required && <span aria-hidden="true"> *</span>}</label>
      {f.about && <p class="why">{visible(f.about)}</p>}
      <Input field={f} value={value} set={set} more={more} />
      {wrong && <p class="wrong" id={`${id}-wrong`} role="alert">{visible(wrong)}</p>}
    </div>
  );
}

function Input({ field: f, value, set, more }: { field: Field; value: unknown; set: (v: unknown) => void; more: object }) {
  if (f.type === "boolean") {
    return <input type="checkbox" {...more} checked={value === true} onChange={e => set(e.currentTarget.checked)} />;
  }
  if (f.choices.length > 0) {
    const chosen = f.many ? (Array.isArray(value) ? value : []) : [value];
    return (
      <select {...more} multiple={f.many} onChange={e => {
        const picked = [...e.currentTarget.selectedOptions].filter(o => o.value !== "").map(o => f.choices[Number(o.value)]?.value);
        set(f.many ? picked : picked[0]);
      }}>
        {!f.many && <option value="">–</option>}
        {f.choices.map((c, i) => <option key={i} value={String(i)} selected={chosen.includes(c.value)}>{visible(c.title)}</option>)}
      </select>
    );
  }
  const text = value === undefined ? "" : typeof value === "string" ? value : pretty(value);
  return <input type="text" inputMode={f.type === "integer" || f.type === "number" ? "decimal" : undefined} {...more} value={text} onInput={e => set(typed(f, e.currentTarget.value))} />;
}

/**
 * typed converts a text to the field's type; a text that does not fit stays a text, and the server
 * reports the error.
 */
function typed(f: Field, text: string): unknown {
  if (text === "") return undefined;
  if ((f.type === "integer" || f.type === "number") && text.trim() !== "" && Number.isFinite(Number(text)) && String(Number(text)) === text.trim()) return Number(text);
  return text;
}
