package spec

import (
	"maps"
	"slices"
	"strings"
)

// validateHooks checks the hooks of the workflow by the rules of an agent file.
func (f *workflowFile) validateHooks() {
	if f.w.Hooks == nil {
		return
	}
	if f.options.Sent && len(f.w.Hooks.All()) > 0 {
		f.fail("hooks", "a file without it", "starts programs of this machine, which a file that was sent may not")
		f.w.Hooks = nil
		return
	}
	f.w.Hooks.validate(f.Report, f.w.Limits(), f.options)
}

// hook adds the hooks of the workflow to all agents of its run, before their own. A
// step that is a run has the hooks of that run's file.
func (f *workflowFile) hook() {
	if len(f.w.Hooks.All()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.uses)) {
		if _, of, _ := strings.Cut(name, innerOf); of != f.of {
			continue
		}
		if f.uses[name].Composite != nil {
			f.notBuilt("hooks", "hooks of a workflow with a team ("+name+")")
			continue
		}
		a := *f.uses[name]
		a.Hooks = f.w.Hooks.before(a.Hooks, absolutePath(f.w.Dir))
		f.uses[name] = &a
	}
}

// before returns these hooks, whose paths are relative to dir, followed by an agent's
// own.
func (h *Hooks) before(own *Hooks, dir string) *Hooks {
	if own == nil {
		own = &Hooks{}
	}
	both := func(own []Hook, lists ...[]Hook) (all []Hook) {
		for _, hook := range slices.Concat(lists...) {
			if hook.Dir = hook.From(dir); slices.ContainsFunc(own, func(o Hook) bool { return hook.Name != "" && o.Name == hook.Name }) {
				hook.Name += " of the workflow"
			}
			all = append(all, hook)
		}
		return append(all, own...)
	}
	return &Hooks{
		BeforeRun:        both(own.BeforeRun, h.BeforeRun),
		BeforeTool:       both(slices.Concat(own.BeforeTool, own.PreToolUse), h.BeforeTool, h.PreToolUse),
		AfterTool:        both(slices.Concat(own.AfterTool, own.PostToolUse), h.AfterTool, h.PostToolUse),
		BeforeCompaction: both(own.BeforeCompaction, h.BeforeCompaction),
		AfterCompaction:  both(own.AfterCompaction, h.AfterCompaction),
		AfterRun:         both(own.AfterRun, h.AfterRun),
	}
}
