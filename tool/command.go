package tool

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Command describes a program that is a tool. Package shell makes the [Tool] of
// it, see its function ForCommand.
//
// The program reads the arguments of a call as JSON from its stdin, and what it
// prints to stdout is the result. Exit code 0 says that the call succeeded, 2
// that the program refuses it, and any other code that it failed; stderr is shown
// with a refusal and with a failure. The variables PAWL_CALL_ID and
// PAWL_IDEMPOTENCY_KEY hold the ID and the Key of the [Call].
type Command struct {
	Name        string
	Description string
	// Schema is as in [Tool].
	Schema json.RawMessage
	// Argv is the program and its arguments. No shell reads them.
	Argv []string
	// Effect is what running the same call twice would do; empty means
	// [event.EffectAtMostOnce].
	Effect event.Effect
	// Risk and Labels are as in [Tool]. Without Labels the result is as trusted as that
	// of a shell command.
	Risk   event.Risk
	Labels *event.Labels
	// Timeout limits one attempt; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Env are variables of the program's environment beside the usual ones, as
	// NAME=value. The run takes a value out of the journal if the agent has it among
	// its secrets.
	Env []string
}
