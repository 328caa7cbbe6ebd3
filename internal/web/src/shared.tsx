import { useEffect, useState } from "preact/hooks";
import { asProblem, get, type Problem } from "./api";

/** useLoaded reads an answer of the API, again when its path changes; "" reads nothing. */
export function useLoaded<T>(path: string): { value: T | null; problem: Problem | null } {
  const [got, setGot] = useState<{ path: string; value: T | null; problem: Problem | null }>({ path: "", value: null, problem: null });
  useEffect(() => {
    if (!path) return;
    const gone = new AbortController();
    void get<T>(path, gone.signal).then(value => setGot({ path, value, problem: null }), err => {
      if (!gone.signal.aborted) setGot({ path, value: null, problem: asProblem(err) });
    });
    return () => gone.abort();
  }, [path]);
  return got.path === path ? got : { value: null, problem: null };
}

/** Copy copies a text. */
export function Copy({ text }: { text: string }) {
  const [done, setDone] = useState("");
  return (
    <>
      <button type="button" onClick={() => void navigator.clipboard.writeText(text).then(() => setDone("Copied"), () => setDone("The browser does not let the page copy"))}>Copy</button>
      <span role="status">{done}</span>
    </>
  );
}
