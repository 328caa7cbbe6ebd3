package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

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
