package engine

import "github.com/pawlrun/pawl/internal/engine/drive"

// calls starts the effects that a machine asks for: calls of models, tools, hooks and
// commands, each behind its intent.
type calls struct {
	*core
	above    *parentRun
	requests drive.Requests
	// given is the first cycle whose messages of the environment ([Env.Inputs])
	// have not been journalled.
	given int
}
