package launch

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/hook/command"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/rules/policy"
)

// hooks are the file's, as programs that run in the workspace and have to be
// what they were when the run began.
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
		last.Run = c.Pinned(pinsOf(o.hookPins, h.Path))
	}
	return hook.Named(all)
}

func commandOf(h spec.HookAt, dir, workspace string) command.Command {
	return command.Command{Words: h.Command.Words, Line: h.Command.Line, FileDir: absolute(h.From(dir)), Workspace: absolute(workspace)}
}

// hookFiles are patterns for the files in the workspace that the hooks, and the
// programs of tools.commands, are made of. They are protected: a model that may write its own guard has none.
func hookFiles(a *spec.Agent, workspace string) []policy.Pattern {
	var names literals
	for _, h := range a.Hooks.All() {
		for _, file := range commandOf(h, a.Dir, workspace).Files() {
			names.add(workspace, file)
		}
	}
	for _, file := range commandFiles(a, workspace) {
		names.add(workspace, file)
	}
	return names
}

// pinHooks are the programs and scripts of the hooks as they are now.
func pinHooks(a *spec.Agent, workspace string) ([]event.HookFile, error) {
	var files []event.HookFile
	for _, h := range a.Hooks.All() {
		pins, err := commandOf(h, a.Dir, workspace).Pins()
		if err != nil {
			return nil, fmt.Errorf("launch: %s: %w", h.Path, err)
		}
		for _, p := range pins {
			files = append(files, event.HookFile{Hook: h.Path, Path: p.Path, Digest: p.Digest})
		}
	}
	return files, nil
}

// pinsOf are those of one hook.
func pinsOf(files []event.HookFile, at string) []command.Pin {
	var pins []command.Pin
	for _, f := range files {
		if f.Hook == at {
			pins = append(pins, command.Pin{Path: f.Path, Digest: f.Digest})
		}
	}
	return pins
}

// checkCommand says what keeps a hook's program from being run.
func checkCommand(dir string, c spec.Command) error {
	return commandOf(spec.HookAt{Hook: spec.Hook{Command: c}}, dir, "").Check()
}
