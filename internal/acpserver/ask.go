package acpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// The options of a permission request.
const (
	allowOnce   acp.PermissionOptionId = "allow_once"
	allowAlways acp.PermissionOptionId = "allow_always"
	rejectOnce  acp.PermissionOptionId = "reject_once"
	// rejectAlways also denies what the rule of allowAlways would allow.
	rejectAlways acp.PermissionOptionId = "reject_always"
)

// errNoDecision parks a run whose question the editor's user did not decide.
var errNoDecision = errors.New("the editor's user has not decided")

// decides returns why questions cannot be put to the editor's user.
func (s *Server) decides(ctx context.Context) error {
	if s.MayDecide == nil {
		return nil
	}
	return s.MayDecide(ctx)
}

// asks returns the function that puts a session's questions to the editor's user. A
// question that the protocol cannot ask stays open in the journal. known reports that the
// editor was sent the calls.
func (s *Server) asks(id acp.SessionId, o *opened, known bool) sessions.Ask {
	return func(ctx context.Context, q event.Question) (event.Resolution, error) {
		if err := s.decides(ctx); err != nil {
			return event.Resolution{}, err
		}
		if !slices.Contains(q.Takes, event.ApprovalApproved) && consent(q) == "" {
			return event.Resolution{}, fmt.Errorf("a question of kind %s has no permission to ask for", q.Kind)
		}
		if !known {
			s.catchUp(ctx, o, q.ID)
		}
		answer, err := s.conn.RequestPermission(ctx, permission(id, o.dir, q))
		if err != nil {
			return event.Resolution{}, err
		}
		if answer.Outcome.Selected == nil {
			s.awaitCancel(ctx, o)
		}
		return s.resolution(q, answer.Outcome)
	}
}

// awaitCancel waits a moment for the notification that cancels a turn: an editor sends it
// before it cancels the questions of the turn, but the connection delivers answers first.
func (s *Server) awaitCancel(ctx context.Context, o *opened) {
	s.mu.Lock()
	cancelled := o.cancelled
	s.mu.Unlock()
	select {
	case <-cancelled: // never, if it is nil
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// patient bounds how long a question waits until the editor was sent the call. The calls
// of runs below the session's are not sent, but their questions are.
const patient = time.Second

// catchUp waits until the editor was sent the text before a call, and the call.
func (s *Server) catchUp(ctx context.Context, o *opened, call string) {
	s.mu.Lock()
	shown := o.call(call)
	s.mu.Unlock()
	select {
	case <-shown:
	case <-time.After(patient):
	case <-ctx.Done():
	}
}

// permission returns the request for a decision about a question.
func permission(id acp.SessionId, dir string, q event.Question) acp.RequestPermissionRequest {
	c := shownCall{title: terminal.Marked(q.Subject), kind: acp.ToolKindOther, input: q.What}
	if call, is := q.Asking.(event.ToolPendingApproval); is {
		c = newTranslator("", dir).shown(call.Tool, "", call.Args, "")
	}
	if what := consent(q); what != "" {
		c.title = terminal.Marked(q.Subject + ": " + what)
	}
	if why := view.AskedBy(q); why != "" {
		c.content = append(c.content, acp.ToolContent(acp.TextBlock(terminal.Marked(why))))
	}
	r := acp.RequestPermissionRequest{
		SessionId: id,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: acp.ToolCallId(q.ID), Title: &c.title, Kind: &c.kind, Status: acp.Ptr(acp.ToolCallStatusPending),
			RawInput: c.input, Content: c.content, Locations: c.locations,
		},
		Options: []acp.PermissionOption{{OptionId: allowOnce, Kind: acp.PermissionOptionKindAllowOnce, Name: "Allow"}},
	}
	if q.Offer != nil {
		name := "Allow for the session: " + terminal.Marked(q.Offer.String())
		r.Options = append(r.Options, acp.PermissionOption{OptionId: allowAlways, Kind: acp.PermissionOptionKindAllowAlways, Name: name})
	}
	if slices.Contains(q.Takes, event.ApprovalRejected) {
		r.Options = append(r.Options, acp.PermissionOption{OptionId: rejectOnce, Kind: acp.PermissionOptionKindRejectOnce, Name: "Reject"})
		if q.Offer != nil {
			name := "Reject for the session: " + terminal.Marked(q.Offer.String())
			r.Options = append(r.Options, acp.PermissionOption{OptionId: rejectAlways, Kind: acp.PermissionOptionKindRejectAlways, Name: name})
		}
	}
	return r
}

// consent returns what a person allows by answering a form without fields, "" for another
// question.
func consent(q event.Question) string {
	form, _ := q.What.(event.FormAsked)
	return form.Consent
}

// resolution converts the user's choice to a decision. A cancelled request decides
// nothing.
func (s *Server) resolution(q event.Question, o acp.RequestPermissionOutcome) (event.Resolution, error) {
	d := event.Resolution{Approver: s.Host.User.Name, Principal: s.Host.User}
	if o.Selected == nil {
		return d, errNoDecision
	}
	switch o.Selected.OptionId {
	case allowOnce:
		d.Kind = event.ApprovalApproved
		if consent(q) != "" { // the form has no fields
			d.Kind, d.Args = event.ApprovalAnswered, json.RawMessage("{}")
		}
	case allowAlways:
		d.Kind, d.Remember = event.ApprovalApproved, q.Offer != nil
	case rejectOnce, rejectAlways:
		d.Kind, d.Reason = event.ApprovalRejected, "rejected by the user of the editor"
		d.Remember = o.Selected.OptionId == rejectAlways && q.Offer != nil
	default:
		return d, fmt.Errorf("the editor chose %q, which is not an option: %w", o.Selected.OptionId, errNoDecision)
	}
	return d, nil
}
