// Package hook defines the owner's hooks: functions that run at fixed stages of a run,
// and may restrict calls but never permit more.
//
// A gate decides: what it refuses does not happen, and a gate that fails, panics or
// takes too long refuses. An observer receives the event and decides nothing; its
// failure is recorded and changes nothing. A hook that a crash interrupted runs again
// when the run resumes, so a hook must tolerate running twice for the same call.
package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlrun/pawl/event"
)

// Kind is the kind of a hook: whether it decides.
type Kind string

// The kinds. By default hooks before an event are gates, and hooks after it observers.
const (
	Gate     Kind = "gate"
	Observer Kind = "observer"
)

// DefaultTimeout bounds a hook without a Timeout.
const DefaultTimeout = 10 * time.Second

// Hook is one hook. Hooks of one stage run in order, and each sees the call as the
// previous one changed it.
type Hook struct {
	// Stage is when the hook runs.
	Stage event.HookStage
	// Name names the hook in the journal, unique within its stage; by default it
	// consists of the stage and the hook's index there. A resumed run finds its hooks
	// by name.
	Name string
	// Kind defaults to [Gate] in stages before an event and to [Observer] after it.
	Kind Kind
	// Tools are the names of the tools whose calls the hook receives, in the stages
	// about tools; a star matches any characters. None means all.
	Tools []string
	// Timeout bounds one call of the hook; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Run is the hook's function. It must return soon after its context ends; its
	// answer is then ignored. It may be called for several calls at once.
	Run func(ctx context.Context, c Call) (Answer, error)
}

// Call is the input of a hook.
type Call struct {
	Stage event.HookStage
	Hook  string
	Run   string
	Cycle int
	// CallID, Tool and Args are those of the call, as earlier hooks left it; in the
	// stages about tools.
	CallID string
	Tool   string
	Args   json.RawMessage
	// Result is the result of the call, as the model would see it; in after_tool. It
	// must not be changed.
	Result *event.ToolResult
	// Outcome is how the run will end; in after_run.
	Outcome *event.Outcome
	// Compaction is the reason for a compaction or, in after_compaction, its result.
	Compaction *event.HistoryCompressed
}

// Answer is the answer of a gate. The zero value lets the run continue.
type Answer struct {
	// Decision defaults to [event.HookRewrite] if Args or Output is set, otherwise to
	// [event.HookContinue].
	Decision event.HookDecision
	// Reason is shown to the model and to people.
	Reason string
	// Args replaces the arguments of the call; in before_tool. The new arguments are
	// validated, resolved and judged like the model's.
	Args json.RawMessage
	// Output replaces the call's output for the model; in after_tool.
	Output *string
}

// About returns the patterns of the tools whose calls the hook receives. A gate after
// some tools also runs after reader, the tool with which a model reads results that
// were too long: otherwise the model could read there what the gate removes.
func (h Hook) About(reader string) []string {
	if len(h.Tools) == 0 || h.Stage != event.HookAfterTool || h.Kind == Observer {
		return h.Tools
	}
	return append(slices.Clip(h.Tools), reader)
}

// Stages lists the stages of hooks, in the order of a run.
func Stages() []event.HookStage {
	return []event.HookStage{
		event.HookBeforeRun, event.HookBeforeTool, event.HookAfterTool,
		event.HookBeforeCompaction, event.HookAfterCompaction, event.HookAfterRun,
	}
}

// Named sets default names, kinds and timeouts.
func Named(hooks []Hook) []Hook {
	hooks = slices.Clone(hooks)
	places := map[event.HookStage]int{}
	for i := range hooks {
		h := &hooks[i]
		h.Name = cmp.Or(h.Name, fmt.Sprintf("%s[%d]", h.Stage, places[h.Stage]))
		h.Kind = cmp.Or(h.Kind, defaultKind(h.Stage))
		h.Timeout = cmp.Or(h.Timeout, DefaultTimeout)
		places[h.Stage]++
	}
	return hooks
}

func defaultKind(s event.HookStage) Kind {
	switch s {
	case event.HookAfterTool, event.HookAfterCompaction, event.HookAfterRun:
		return Observer
	}
	return Gate
}

// Errors of [Hook.Check].
var (
	errStage   = errors.New("is none of before_run, before_tool, after_tool, before_compaction, after_compaction, after_run")
	errKind    = errors.New("is neither gate nor observer")
	errTooLate = errors.New("is gate, and there is nothing left to decide then; give observer")
	errTools   = errors.New("are given, and the stage is not about tools")
	errRun     = errors.New("is missing")
)

// FieldError is an error in a field of a hook.
type FieldError struct {
	Field string
	Err   error
}

// Error names the field and the error.
func (e *FieldError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns the error without the field.
func (e *FieldError) Unwrap() error { return e.Err }

// Check validates a hook. The error is a *[FieldError].
func (h Hook) Check() error {
	tools := h.Stage == event.HookBeforeTool || h.Stage == event.HookAfterTool
	switch {
	case !slices.Contains(Stages(), h.Stage):
		return &FieldError{"Stage", errStage}
	case h.Kind != "" && h.Kind != Gate && h.Kind != Observer:
		return &FieldError{"Kind", errKind}
	case h.Kind == Gate && (h.Stage == event.HookAfterRun || h.Stage == event.HookAfterCompaction):
		return &FieldError{"Kind", errTooLate}
	case len(h.Tools) > 0 && !tools:
		return &FieldError{"Tools", errTools}
	case h.Run == nil:
		return &FieldError{"Run", errRun}
	}
	return nil
}
