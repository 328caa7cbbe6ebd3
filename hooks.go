package pawl

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/hook"
)

// Types of the hooks of an [Agent].
type (
	// Hook is a function that runs at a fixed stage of a run.
	Hook = hook.Hook
	// HookCall is the input of a hook.
	HookCall = hook.Call
	// HookAnswer is the answer of a gate; the zero value lets the run continue.
	HookAnswer = hook.Answer
)

// checkHooks reports the errors in the agent's hooks, whose names are set.
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
