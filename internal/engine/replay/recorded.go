package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// Tools returns the tools of a set without effects: the n-th call of a tool with the
// same arguments returns the n-th recorded result. A call without a recorded result
// returns an error.
func Tools(ctx context.Context, past drive.Past, run string, tools *tool.Set) (*tool.Set, error) {
	recorded := &recordedResults{byDigest: map[string][]tool.Result{}}
	content := drive.NewBlobs(past.Store)
	digests, started := map[string]string{}, map[string]bool{}
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.ToolCall:
			digests[d.CallID] = d.Digest
		case event.ToolStarted:
			started[d.CallID] = true
		case event.ToolResult:
			if !started[d.CallID] {
				return nil
			}
			if d.Blob != "" {
				whole, err := content.Load(ctx, d.Blob)
				if err != nil {
					return err
				}
				d.Output = string(whole)
			}
			recorded.add(digests[d.CallID], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded tools of run %s: %w", run, err)
	}
	var all []tool.Tool
	for _, def := range tools.Defs() {
		t, _ := tools.Lookup(def.Name)
		t.Agent = false // the record contains the child's result
		t.Run = func(_ context.Context, c tool.Call) (tool.Result, error) { return recorded.next(run, t.Name, c) }
		all = append(all, t)
	}
	return tool.NewSet(all...)
}

// recordedResults is safe for concurrent use.
type recordedResults struct {
	mu       sync.Mutex
	byDigest map[string][]tool.Result
}

func (r *recordedResults) add(digest string, d event.ToolResult) {
	r.byDigest[digest] = append(r.byDigest[digest], tool.Result{
		Output: d.Output, IsError: d.IsError, ErrorType: d.ErrorType, ExitCode: d.ExitCode,
		Media: d.Media, Tools: d.Tools, Untrusted: d.Untrusted, Private: d.Private, EndsRun: d.EndsRun, Truncated: d.Truncated && d.Blob == "", Pin: d.Pin,
	})
}

func (r *recordedResults) next(run, name string, c tool.Call) (tool.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := tool.Digest(name, c.Args, "")
	left := r.byDigest[digest]
	if len(left) == 0 {
		return tool.Result{}, &tool.Error{
			Type: event.ErrorNotFound, Message: "run " + run + " did not record this call, so nothing was done", NothingCame: true,
		}
	}
	r.byDigest[digest] = left[1:]
	return left[0], drive.ErrRecorded
}

// Decisions returns an [Env.Ask] that answers questions with the recorded decisions of
// a run: the n-th question about the same call gets the n-th decision. It approves a
// call without a recorded decision, because a replay has no effects. It requires
// [Env.AskInTurn].
func Decisions(ctx context.Context, past drive.Past, run string) (func(context.Context, event.Question) (event.Resolution, error), error) {
	var asked []*event.Resolution // in the order of the questions
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.Asking:
			q := d.Question()
			asked = append(asked, &event.Resolution{ID: q.ID, Digest: q.Digest})
		case event.Resolving:
			// If a question was repeated, the decision belongs to the last one.
			r := d.Resolution()
			for _, q := range slices.Backward(asked) {
				if q.ID == r.ID {
					*q = r
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded decisions of run %s: %w", run, err)
	}
	said := &recordedDecisions{run: run, byDigest: map[string][]event.Resolution{}}
	for _, d := range asked {
		if d.Kind != "" {
			said.byDigest[d.Digest] = append(said.byDigest[d.Digest], *d)
		}
	}
	return said.answer, nil
}

// recordedDecisions is safe for concurrent use.
type recordedDecisions struct {
	run      string
	mu       sync.Mutex
	byDigest map[string][]event.Resolution
}

func (r *recordedDecisions) answer(_ context.Context, q event.Question) (event.Resolution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.byDigest[q.Digest]
	if len(left) == 0 {
		by, kind := "replay of "+r.run, event.ApprovalApproved
		if !slices.Contains(q.Takes, kind) {
			kind = event.ApprovalRejected
		}
		return event.Resolution{Kind: kind, Approver: by, Reason: "decided by the " + by}, nil
	}
	r.byDigest[q.Digest] = left[1:]
	return left[0], nil
}

// Hooks returns hooks without effects: a gate repeats its recorded answers about the
// same call in order, and allows what has no recorded answer. An observer does not run,
// because it decides nothing.
func Hooks(ctx context.Context, past drive.Past, run string, hooks []hook.Hook) ([]hook.Hook, error) {
	said := &recordedAnswers{byMoment: map[moment][]event.HookResult{}}
	digests := map[string]string{}
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.ToolCall:
			digests[d.CallID] = d.Digest
		case event.HookResult:
			at := moment{d.Stage, d.Hook, digests[d.CallID]}
			said.byMoment[at] = append(said.byMoment[at], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded hooks of run %s: %w", run, err)
	}
	var recorded []hook.Hook
	for _, h := range hooks {
		h.Run = said.answer
		recorded = append(recorded, h)
	}
	return recorded, nil
}

// moment identifies the request to a hook: its stage, its name, and the digest of the
// call that it saw.
type moment struct {
	stage        event.HookStage
	hook, digest string
}

// recordedAnswers is safe for concurrent use.
type recordedAnswers struct {
	mu       sync.Mutex
	byMoment map[moment][]event.HookResult
}

func (r *recordedAnswers) answer(_ context.Context, c hook.Call) (hook.Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := moment{stage: c.Stage, hook: c.Hook}
	if c.CallID != "" {
		at.digest = tool.Digest(c.Tool, c.Args, "")
	}
	left := r.byMoment[at]
	if len(left) == 0 || left[0].Observer {
		return hook.Answer{}, nil
	}
	r.byMoment[at] = left[1:]
	d := left[0]
	if d.Failed {
		return hook.Answer{}, errors.New(d.Reason)
	}
	a := hook.Answer{Decision: d.Decision, Reason: d.Reason, Args: d.Args}
	if d.Decision == event.HookRewrite && d.Stage == event.HookAfterTool {
		a.Output = &d.Output
	}
	return a, nil
}

// Inputs returns the messages that a run received while it ran, by the cycle in which
// they arrived, for [Env.Inputs].
func Inputs(ctx context.Context, past drive.Past, run string) (map[int][]event.InputReceived, error) {
	inputs, cycle := map[int][]event.InputReceived{}, 0
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.CycleStart:
			cycle = d.Cycle
		case event.InputReceived:
			d.Command, d.MessageID = 0, "" // these ids belong to the inbox of the recorded run
			inputs[cycle] = append(inputs[cycle], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded messages of run %s: %w", run, err)
	}
	return inputs, nil
}
