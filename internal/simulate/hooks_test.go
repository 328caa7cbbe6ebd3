package simulate_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// hooked gives two runs of three hooks, drawn from luck of its own: a seed keeps
// its other events.
func (w *world) hooked() {
	w.fortune = rand.New(rand.NewPCG(uint64(w.seed), 13))
	r := w.fortune
	if r.IntN(3) == 0 {
		return
	}
	for _, h := range []agent.Hook{
		{Stage: event.HookBeforeRun, Name: "admit"},
		{Stage: event.HookBeforeTool, Name: "guard", Tools: []string{"s*", "p*"}},
		{Stage: event.HookBeforeTool, Name: "second", Tools: []string{"put", "pay"}},
		{Stage: event.HookBeforeTool, Name: "log", Observer: true},
		{Stage: event.HookAfterTool, Name: "redact"},
		{Stage: event.HookAfterTool, Name: "tell", Observer: true, Tools: []string{"read"}},
		{Stage: event.HookBeforeCompaction, Name: "keep"},
		{Stage: event.HookAfterCompaction, Name: "note", Observer: true},
		{Stage: event.HookAfterRun, Name: "farewell", Observer: true},
	} {
		if r.IntN(2) == 0 {
			w.cfg.Hooks = append(w.cfg.Hooks, h)
		}
	}
}

// chance is the hooks' own luck.
func (w *world) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.fortune.IntN(n) == 0
}

// hooks are the hooks as one process hears them.
func (w *world) hooks(p *process) []hook.Hook {
	var all []hook.Hook
	for _, h := range w.cfg.Hooks {
		kind := hook.Gate
		if h.Observer {
			kind = hook.Observer
		}
		all = append(all, hook.Hook{
			Stage: h.Stage, Name: h.Name, Kind: kind, Tools: h.Tools, Timeout: 5 * time.Second,
			Run: func(ctx context.Context, c hook.Call) (hook.Answer, error) { return w.hear(ctx, p, c) },
		})
	}
	return all
}

// hear is a hook with moods: it takes too long, fails, panics, dies with its
// process, and says what it likes.
func (w *world) hear(ctx context.Context, p *process, c hook.Call) (hook.Answer, error) {
	if p.dead.Load() {
		<-ctx.Done()
		return hook.Answer{}, ctx.Err()
	}
	if w.chance(30) {
		w.notef("%s dies while %s is heard", p.name, c.Hook)
		p.die()
	}
	long := time.Second
	if w.chance(20) {
		long = time.Minute
	}
	if err := sleep(ctx, long); err != nil {
		return hook.Answer{}, err
	}
	switch {
	case w.chance(20):
		return hook.Answer{}, errors.New("the hook has a bad day")
	case w.chance(40):
		panic("the hook has a defect")
	case c.Stage == event.HookBeforeRun && !w.chance(8), c.Stage == event.HookAfterRun:
		return hook.Answer{}, nil
	case w.chance(6):
		return hook.Answer{Decision: event.HookBlock, Reason: "no"}, nil
	case c.Stage == event.HookBeforeTool && w.chance(4):
		return hook.Answer{Args: json.RawMessage(`{"path":"` + []string{"x", "y"}[len(c.CallID)%2] + `"}`)}, nil
	case c.Stage == event.HookBeforeTool && w.chance(20):
		return hook.Answer{Args: json.RawMessage(`{"path":7}`)}, nil
	case c.Stage == event.HookBeforeTool && w.chance(6):
		return hook.Answer{Decision: event.HookAsk, Reason: "look at it"}, nil
	case c.Stage == event.HookAfterTool && w.chance(4):
		return hook.Answer{Output: new("redacted")}, nil
	}
	return hook.Answer{}, nil
}

// hookPromises folds a journal into what must hold of its hooks.
type hookPromises struct {
	// heard are the hooks of a call, or of the run, that have their results, by
	// stage; refused are those of a stage that blocked.
	heard   map[string]int
	refused map[string]bool
	started map[string]bool
	asked   map[string]bool
	ended   bool
	cancel  bool
}

func (h *hookPromises) event(w *world, e *event.Event) {
	if h.heard == nil {
		h.heard, h.refused, h.started, h.asked = map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	switch d := e.Data.(type) {
	case event.HookResult:
		h.result(w, d)
	case event.ToolCall:
		if d.EditedBy != "" && !strings.HasPrefix(d.EditedBy, "the hook ") {
			// A person gave it other arguments, about which all are heard again.
			delete(h.heard, string(event.HookBeforeTool)+d.CallID)
			delete(h.asked, d.CallID)
			w.seen("hooks heard again over an edit")
		}
	case event.CancelRequested:
		h.cancel = true
	case event.CycleStart, event.ModelRequested:
		h.whole(w, e, event.HookBeforeRun, "", "")
		if h.refused[string(event.HookBeforeRun)] {
			w.violate("%s, though a hook did not let the run begin", e.Type())
		}
	case event.PolicyDecision:
		h.judged(w, e, d)
	case event.ToolStarted:
		h.started[d.CallID] = true
		if h.refused[string(event.HookBeforeTool)+d.CallID] {
			w.violate("%s started, and a hook had blocked it", d.CallID)
		}
	case event.ToolResults:
		for _, r := range d.Results {
			if h.started[r.CallID] {
				h.whole(w, e, event.HookAfterTool, r.CallID, r.Tool)
			}
		}
	case event.RunTerminatedBy:
		h.ended = d.Reason != event.ReasonInternal
	case event.RunCompleted:
		if h.ended {
			h.whole(w, e, event.HookAfterRun, "", "")
		}
	}
}

func (h *hookPromises) result(w *world, d event.HookResult) {
	key := string(d.Stage) + d.CallID
	w.seen("hook " + string(d.Stage) + " " + string(d.Decision))
	if d.Failed {
		w.seen("hook failed")
		if (d.Decision == event.HookBlock) == d.Observer {
			w.violate("a hook that failed has %+v", d)
		}
	}
	switch d.Stage {
	case event.HookBeforeCompaction, event.HookAfterCompaction:
		return
	case event.HookBeforeTool:
		if d.Decision == event.HookAsk {
			h.asked[d.CallID] = true
		}
	}
	h.heard[key]++
	if d.Decision == event.HookBlock {
		h.refused[key] = true
	}
}

// judged: policy comes after the hooks, and asks where one of them did.
func (h *hookPromises) judged(w *world, e *event.Event, d event.PolicyDecision) {
	tool := ""
	for _, c := range w.tool {
		if c.id == d.CallID {
			tool = c.name
		}
	}
	h.whole(w, e, event.HookBeforeTool, d.CallID, tool)
	if h.asked[d.CallID] && d.Decision == event.DecisionAllow {
		w.violate("%s is allowed, and a hook wanted a person to decide", d.CallID)
	}
}

// whole says that every hook of a stage has been heard by now, unless one of
// them refused.
func (h *hookPromises) whole(w *world, e *event.Event, stage event.HookStage, call, tool string) {
	want := 0
	for _, hook := range w.cfg.Hooks {
		cfg := agent.Config{Hooks: []agent.Hook{{Stage: event.HookBeforeTool, Name: hook.Name, Tools: hook.Tools}}}
		if hook.Stage == stage && len(cfg.HooksBefore(tool)) == 1 {
			want++
		}
	}
	key := string(stage) + call
	if got := h.heard[key]; got < want && !h.refused[key] && !(h.cancel && stage == event.HookBeforeRun) {
		w.violate("event %d (%s): %d of %d hooks of %s %s were heard", e.Seq, e.Type(), got, want, stage, call)
	} else if got > want && !h.cancel {
		w.violate("event %d (%s): %d results of %d hooks of %s %s", e.Seq, e.Type(), got, want, stage, call)
	}
}

// named is a call with its tool.
type named struct{ id, name string }

// sees minds that a model is not shown what a hook took away.
func (w *world) sees(messages []*llm.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && w.hidden[r.CallID] != "" && r.Output == w.hidden[r.CallID] {
				w.violatef("the model is shown the result of %s, which a hook took away", r.CallID)
			}
		}
	}
}

// hookCommitted notes what is on disk of hooks. w.mu is held.
func (w *world) hookCommitted(data event.Data) {
	switch d := data.(type) {
	case event.ToolCall:
		w.tool = append(w.tool, named{d.CallID, d.Tool})
	case event.ToolResult:
		w.outputs[d.CallID] = d.Output
	case event.HookResult:
		if d.Stage == event.HookAfterTool && (d.Decision == event.HookBlock || d.Decision == event.HookRewrite) {
			w.hidden[d.CallID] = w.outputs[d.CallID]
		}
	}
}
