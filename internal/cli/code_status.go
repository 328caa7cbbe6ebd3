package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view"
)

// sessionStatus is what the status line of a session says about its run.
type sessionStatus struct {
	model, tier string
	mode        policy.Mode
	// used is the size of the last request and its answer in tokens, and windows the
	// context windows of the models.
	used    int64
	windows map[string]int
}

// add applies an event of the run.
func (s *sessionStatus) add(data event.Data) {
	s.mode = cmp.Or(sessions.ModeOf(data), s.mode)
	switch d := data.(type) {
	case event.RunStarted:
		s.tier, s.windows = d.Sandbox, map[string]int{}
		var c agent.Config
		if json.Unmarshal(d.Config, &c) != nil {
			return
		}
		for _, t := range c.Targets {
			s.windows[t.Model] = t.ContextWindow
		}
		if len(c.Targets) > 0 {
			s.model = c.Targets[0].Model
		}
	case event.ModelRequested:
		if d.Purpose == "" {
			s.model = d.Model
		}
	case event.ModelResponse:
		if d.Purpose == "" {
			s.used = d.Usage.Input + d.Usage.Output
		}
	}
}

// statusOf reads the status of a run from the journal, with its cost and limits.
func (s *session) statusOf(ctx context.Context, run string) (status sessionStatus, v view.View, err error) {
	for e, err := range drive.AsStored(ctx, s.store, run, event.TypeRunStarted, event.TypeRunForked, event.TypeInputReceived,
		event.TypeModelRequested, event.TypeModelResponse, event.TypeModelAttemptFailed, event.TypeBudgetCommitted) {
		if err != nil {
			return status, v, err
		}
		status.add(e.Data)
		v.Add(e)
	}
	return status, v, nil
}

// text returns the number of open questions, the model, the cost of the cap, the context used
// and the sandbox tier.
func (s *sessionStatus) text(v *view.View, questions int) string {
	var parts []string
	if questions > 0 {
		parts = append(parts, plural(questions, "question"))
	}
	parts = append(parts, firstLine(s.model, 40))
	if cost := v.Run().Cost; cost != nil {
		text := money(cost, v.Run().Usage)
		if limit, _ := v.Limits.CostCap(); limit > 0 && cost.Priced {
			text += " of " + dollars(limit)
		}
		parts = append(parts, text)
	}
	if window := s.windows[s.model]; window > 0 && s.used > 0 {
		parts = append(parts, fmt.Sprintf("context %d %%", 100*s.used/int64(window)))
	}
	if s.tier != "" {
		parts = append(parts, s.tier)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
}

// newWarnings returns the warnings about a run that its session has not shown.
func (v *textView) newWarnings(d event.RunStarted) []note {
	d.Warnings = slices.DeleteFunc(slices.Clone(d.Warnings), func(w string) bool {
		shown := v.session[w]
		v.session[w] = true
		return shown
	})
	return notesOf(view.Warnings(d))
}

// sessionEnd returns the lines about the end of a message's run: none for an answer.
func sessionEnd(e *event.Event) []note {
	switch d := e.Data.(type) {
	case event.RunParked:
		if d.Reason == event.ParkInterrupted {
			return []note{{faint, "interrupted; the next message goes on from here"}}
		}
	case event.RunCompleted:
		if d.Outcome.OK {
			return nil
		}
	}
	return notesOf(view.Brief(e))
}
