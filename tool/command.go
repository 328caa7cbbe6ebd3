package tool

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Command describes a program that is a tool; ForCommand of package shell makes its
// [Tool].
//
// The program reads the arguments of a call as JSON from its stdin, and its stdout is
// the result. Exit code 0 means success, 2 that the program refuses the call, and any
// other code failure; stderr is shown after a refusal and a failure. The variables
// PAWL_CALL_ID and PAWL_IDEMPOTENCY_KEY contain the ID and the Key of the [Call].
type Command struct {
	Name        string
	Description string
	// Schema is as in [Tool].
	Schema json.RawMessage
	// Argv is the program and its arguments, without a shell.
	Argv []string
	// Effect is the effect of running the same call twice; empty means
	// [event.EffectAtMostOnce].
	Effect event.Effect
	// Risk and Labels are as in [Tool]. Without Labels the result is as trusted as that
	// of a shell command.
	Risk   event.Risk
	Labels *event.Labels
	// Timeout limits one attempt; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Env holds variables of the program's environment in addition to the usual ones,
	// as NAME=value. The run keeps a value out of the journal if it is one of the
	// agent's secrets.
	Env []string
}
