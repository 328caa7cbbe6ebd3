import { type Attributes, type ComponentType, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem } from "./api";
import { ProblemBox } from "./parts";

/** lazily returns a component whose code is loaded when it is first shown. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [component, setComponent] = useState<ComponentType<P> | null>(() => loaded);
    const [problem, setProblem] = useState<Problem | null>(null);
    useEffect(() => {
      if (!component) load().then(c => { loaded = c; setComponent(() => c); }, err => setProblem(asProblem(err)));
    }, []);
    if (problem) return <ProblemBox problem={problem} />;
    return component ? h(component, props as P & Attributes) : <p class="empty">Loading…</p>;
  };
}
