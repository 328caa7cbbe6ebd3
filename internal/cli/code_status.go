package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
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

// liveView is the view of a turn, with the state of the session.
type liveView struct {
	*textView
	chat   *liveChat
	turn   *sessions.Turn
	status sessionStatus
	last   string
	ended  bool
}

func (v *liveView) show(e event.Event) error {
	v.ask(&e)
	own := v.work.at(e.Run) == v.work.root
	if !own && v.turn.Before(&e) {
		v.follow(e)
		return nil
	}
	if own && e.Seq > v.after {
		_, v.ended = e.Data.(event.RunCompleted)
		v.chat.receive(e.Data)
	}
	if err := v.textView.show(e); err != nil {
		return err
	}
	if v.command { // the line describes the session
		return nil
	}
	if own {
		v.status.add(e.Data)
		if mode := sessions.ModeOf(e.Data); mode != "" && e.Seq > v.after {
			v.chat.showMode(mode)
		}
	}
	if text := v.status.text(&v.work.root.view, len(v.chat.questions)); text != v.last {
		v.last = text
		v.chat.screen.Send(live.Status{Text: text})
	}
	return nil
}

// ask shows which questions are open after an event.
func (v *liveView) ask(e *event.Event) {
	switch e.Data.(type) {
	case event.Asking, event.Resolving, event.Voiding, event.InputReceived:
	default:
		return
	}
	v.chat.questions.Add(e.Run, e.Data)
	var all live.Questions
	for _, q := range v.chat.questions {
		subject := q.Subject + " " + askedAbout(q.Question)
		if call, is := q.Asking.(event.ToolPendingApproval); is {
			subject = q.Subject + " " + terminal.Marked(string(call.Args))
		}
		if w := v.work.at(q.Run); w.child != nil {
			subject = v.work.called(w) + ": " + subject
		}
		all.Open = append(all.Open, live.Question{ID: q.ID, Subject: subject})
	}
	v.chat.screen.Send(all)
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
