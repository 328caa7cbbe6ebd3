// Package hook is the contract of the owner's hooks: code that runs at fixed
// moments of a run, and may restrict calls, never permit more.
//
// A gate decides: what it refuses does not happen, and one that fails, panics or
// takes too long refuses. An observer receives the event and decides nothing; its
// failure is recorded and changes nothing.
//
// A hook that a crash interrupted runs again when the run resumes, so a hook must
// tolerate running twice for the same call.
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

// Kind says whether a hook decides.
type Kind string

// The kinds. By default hooks before something are gates, and hooks after it
// observers.
const (
	Gate     Kind = "gate"
	Observer Kind = "observer"
)

// DefaultTimeout bounds a hook that does not say how long it may take.
const DefaultTimeout = 10 * time.Second

// Hook is one hook. Hooks of one stage run in order, and each sees the call as the
// previous one changed it.
type Hook struct {
	// Stage is when the hook runs.
	Stage event.HookStage
	// Name names the hook in the journal, unique within its stage; by default
	// it is made of the stage and the hook's place there. A run that is resumed
	// finds its hooks by their names.
	Name string
	// Kind is by default [Gate] before something and [Observer] after it.
	Kind Kind
	// Tools are the tools whose calls the hook is about, in the stages about
	// tools: names in which a star stands for any characters. None means all.
	Tools []string
	// Timeout is how long the hook may take; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Run is the hook. It must return soon after its context ends, and what it
	// says then is no answer any more. It may be called for several calls at once.
	Run func(ctx context.Context, c Call) (Answer, error)
}

// Call is the input of a hook.
type Call struct {
	Stage event.HookStage
	Hook  string
	Run   string
	Cycle int
	// CallID, Tool and Args are the call's, as the hooks before this one left
	// it; in the stages about tools.
	CallID string
	Tool   string
	Args   json.RawMessage
	// Result is what the call gave, as the model would see it; in after_tool.
	// It must not be changed.
	Result *event.ToolResult
	// Outcome is how the run will end; in after_run.
	Outcome *event.Outcome
	// Compaction is why the conversation is to become shorter, or, in
	// after_compaction, what became of it.
	Compaction *event.HistoryCompressed
}

// Answer is what a gate says. The zero value lets things go on.
type Answer struct {
	// Decision is, when empty, [event.HookRewrite] where Args or Output are
	// given and [event.HookContinue] else.
	Decision event.HookDecision
	// Reason is shown to the model and to people.
	Reason string
	// Args are other arguments for the call, whole; in before_tool. They are
	// validated, resolved and judged like the model's own.
	Args json.RawMessage
	// Output is what the model sees in the place of the call's output; in
	// after_tool.
	Output *string
}

// About returns the patterns of the tools whose calls the hook is about. A gate
// after some tools also runs after reader, the tool with which a model pages
// through results that were too long: otherwise the model could read there what the
// gate removes.
func (h Hook) About(reader string) []string {
	if len(h.Tools) == 0 || h.Stage != event.HookAfterTool || h.Kind == Observer {
		return h.Tools
	}
	return append(slices.Clip(h.Tools), reader)
}

// Stages lists the moments at which hooks run, in the order of a run.
func Stages() []event.HookStage {
	return []event.HookStage{
		event.HookBeforeRun, event.HookBeforeTool, event.HookAfterTool,
		event.HookBeforeCompaction, event.HookAfterCompaction, event.HookAfterRun,
	}
}

// Named fills the names, kinds and timeouts that are not given.
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

// FieldError says what is wrong with a field of a hook.
type FieldError struct {
	Field string
	Err   error
}

// Error names the field and what is wrong with it.
func (e *FieldError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap is what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// Check says what is wrong with a hook, as a *[FieldError], before any run.
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
