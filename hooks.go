package pawl

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/tool/result"
)

// Words of the hooks of an [Agent].
type (
	// Hook is a function that is heard at a fixed moment of a run.
	Hook = hook.Hook
	// HookCall is what a hook is told.
	HookCall = hook.Call
	// HookAnswer is what a gate says; the zero value lets things go on.
	HookAnswer = hook.Answer
)

// checkHooks reports what is wrong with the agent's hooks, which have their
// names.
func checkHooks(hooks []Hook, report func(field, format string, args ...any)) {
	seen := map[string]bool{}
	for i, h := range hooks {
		field := fmt.Sprintf("Hooks[%d]", i)
		if wrong, ok := errors.AsType[*hook.FieldError](h.Check()); ok {
			report(field+"."+wrong.Field, "%v", wrong.Err)
		}
		id := string(h.Stage) + " " + h.Name
		if seen[id] {
			report(field+".Name", "%s is the name of two hooks of %s", h.Name, h.Stage)
		}
		seen[id] = true
	}
}

// declared are the hooks as the machine knows them.
func declared(hooks []Hook) []agent.Hook {
	var out []agent.Hook
	for _, h := range hooks {
		out = append(out, agent.Hook{Stage: h.Stage, Name: h.Name, Observer: h.Kind == hook.Observer, Tools: h.About(result.Name)})
	}
	return out
}
