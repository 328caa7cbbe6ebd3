package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// maxReason bounds the bytes of a reason, which is shown to the model and on one line.
const maxReason = 4000

// Result converts a hook's answer, or its failure, to the record of the run. A gate
// with an invalid answer has failed, so that a failed rewrite never lets the original
// through.
func Result(c Call, observer bool, a Answer, err error) event.HookResult {
	r := event.HookResult{
		CallID: c.CallID, Hook: c.Hook, Stage: c.Stage, Observer: observer, Decision: event.HookContinue,
	}
	if err == nil {
		a = a.completed()
		err = a.check(c.Stage, observer)
	}
	if err != nil {
		r.Failed, r.Reason = true, clip(err.Error())
		if !observer {
			r.Decision = event.HookBlock
		}
		return r
	}
	r.Decision, r.Reason = a.Decision, clip(a.Reason)
	switch {
	case a.Decision != event.HookRewrite:
	case c.Stage == event.HookBeforeTool:
		r.Args = a.Args
	default:
		r.Output = *a.Output
	}
	return r
}

func (a Answer) completed() Answer {
	if a.Decision == "" {
		a.Decision = event.HookContinue
		if len(a.Args) > 0 || a.Output != nil {
			a.Decision = event.HookRewrite
		}
	}
	return a
}

// check returns an error if an answer is invalid at a stage.
func (a Answer) check(s event.HookStage, observer bool) error {
	args, output := len(a.Args) > 0, a.Output != nil
	switch {
	case observer && a.Decision != event.HookContinue:
		return fmt.Errorf("an observer decides nothing, and it said %s", a.Decision)
	case args && s != event.HookBeforeTool:
		return fmt.Errorf("it gave arguments, which %s cannot change", s)
	case output && s != event.HookAfterTool:
		return fmt.Errorf("it gave an output, which %s cannot change", s)
	case args && !json.Valid(a.Args):
		return errors.New("the arguments that it gave are no JSON")
	}
	switch a.Decision {
	case event.HookContinue, event.HookBlock:
	case event.HookAsk:
		if s != event.HookBeforeTool {
			return fmt.Errorf("it said ask, which has no meaning in %s", s)
		}
	case event.HookRewrite:
		if !args && !output {
			return errors.New("it said rewrite, and gave nothing to put in the place of what is there")
		}
		return nil
	default:
		return fmt.Errorf("it said %q, which is none of continue, rewrite, ask, block", a.Decision)
	}
	if args || output {
		return fmt.Errorf("it said %s, and gave a rewrite", a.Decision)
	}
	return nil
}

// clip truncates a reason that is too long, between characters.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "…"
}
