package launch

import (
	"path/filepath"
	"slices"

	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/hook/command"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/policy"
	"github.com/pawlrun/pawl/spec"
	"github.com/pawlrun/pawl/tool/result"
)

// hooks are the file's, as programs that run in the workspace.
func hooks(a *spec.Agent, o Options) []hook.Hook {
	var all []hook.Hook
	for _, h := range a.Hooks.All() {
		c := commandOf(h, a.Dir, o.Workspace)
		entry := hook.Hook{Stage: h.Stage, Name: h.Name, Kind: hook.Kind(h.Kind), Tools: h.About()}
		if h.TimeoutSeconds != nil {
			entry.Timeout = h.TimeoutSeconds.Duration()
		}
		all = append(all, entry)
		last := &all[len(all)-1]
		// What the program says is read only where the hook is a gate.
		c.Observer = hook.Named([]hook.Hook{*last})[0].Kind == hook.Observer
		last.Run = c.Run
	}
	return hook.Named(all)
}

func commandOf(h spec.HookAt, dir, workspace string) command.Command {
	return command.Command{Words: h.Command.Words, Line: h.Command.Line, FileDir: absolute(dir), Workspace: absolute(workspace)}
}

// declared are hooks as the machine knows them.
func declared(hooks []hook.Hook) []agent.Hook {
	var out []agent.Hook
	for _, h := range hooks {
		out = append(out, agent.Hook{Stage: h.Stage, Name: h.Name, Observer: h.Kind == hook.Observer, Tools: h.About(result.Name)})
	}
	return out
}

// hookFiles are patterns for the files in the workspace that the hooks are made
// of. They are protected: a model that may write its own guard has none.
func hookFiles(a *spec.Agent, workspace string) []policy.Pattern {
	var patterns []policy.Pattern
	add := func(path string) {
		rel, ok := inside(workspace, path)
		if p := literally(rel); ok && !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	for _, h := range a.Hooks.All() {
		for _, file := range commandOf(h, a.Dir, workspace).Files() {
			// The name itself, under the real name of its directory, and the
			// file behind it, should it be a link.
			add(filepath.Join(real(filepath.Dir(file)), filepath.Base(file)))
			add(real(file))
		}
	}
	return patterns
}

// checkCommand says what keeps a hook's program from being run.
func checkCommand(dir string, c spec.Command) error {
	return commandOf(spec.HookAt{Hook: spec.Hook{Command: c}}, dir, "").Check()
}
