package acpserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view/terminal"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Prompt implements [acp.Agent]: it sends a message to the session, and returns when the
// run has ended or waits.
func (s *Server) Prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	o, err := s.session(r.SessionId)
	if err != nil {
		return acp.PromptResponse{}, err
	}
	m, err := messageOf(r.Prompt)
	if err != nil {
		return acp.PromptResponse{}, invalid(err)
	}
	if m.Text == "/"+compactCommand {
		return s.compactNext(ctx, r.SessionId)
	}
	s.mu.Lock()
	o.cancelled = make(chan struct{})
	s.mu.Unlock()
	turn, err := s.Host.Send(ctx, string(r.SessionId), o.dir, m, s.asks(r.SessionId, o, false))
	if err != nil {
		return acp.PromptResponse{}, err
	}
	// A cancelled request still waits until the run has parked.
	defer context.AfterFunc(ctx, func() {
		if err := s.interrupt(s.serving, r.SessionId); err != nil {
			s.Log.Warn("a message cannot be cancelled", "session", r.SessionId, "error", err)
		}
	})()
	stop, err := s.follow(s.serving, r.SessionId, o, turn)
	return acp.PromptResponse{StopReason: stop}, err
}

// compactNext lets the next run of a session shorten the conversation first.
func (s *Server) compactNext(ctx context.Context, id acp.SessionId) (acp.PromptResponse, error) {
	if err := s.Host.Choose(ctx, string(id), func(c *sessions.Choice) { c.Compact = true }); err != nil {
		return acp.PromptResponse{}, err
	}
	err := s.update(ctx, id, acp.UpdateAgentMessageText("The conversation is shortened before the next message is answered."))
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
}

// messageOf converts the blocks of a prompt to a message.
func messageOf(blocks []acp.ContentBlock) (m sessions.Message, err error) {
	var text []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			text = append(text, b.Text.Text)
		case b.ResourceLink != nil:
			text = append(text, fmt.Sprintf("[%s](%s)", b.ResourceLink.Name, b.ResourceLink.Uri))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			c := b.Resource.Resource.TextResourceContents
			text = append(text, fmt.Sprintf("The content of %s:\n\n%s", c.Uri, c.Text))
		case b.Image != nil:
			data, err := base64.StdEncoding.DecodeString(b.Image.Data)
			if err != nil {
				return m, fmt.Errorf("the data of an image is not base64: %w", err)
			}
			m.Media = append(m.Media, llm.Media{MediaType: b.Image.MimeType, Data: data})
		default:
			return m, fmt.Errorf("a prompt has text, images, links and text resources")
		}
	}
	m.Text = strings.Join(text, "\n\n")
	return m, nil
}

// follow sends the updates of a turn to the editor, and returns why it stopped.
func (s *Server) follow(ctx context.Context, id acp.SessionId, o *opened, turn *sessions.Turn) (stop acp.StopReason, err error) {
	s.mu.Lock()
	o.turn = turn
	cancelled := o.cancelled
	s.mu.Unlock()
	if cancelled == nil { // no message has been sent yet, only a question
		cancelled = make(chan struct{})
	}
	defer func() {
		s.mu.Lock()
		o.turn, o.shown = nil, nil
		s.mu.Unlock()
	}()
	if closed(cancelled) { // before the turn was known
		if err := turn.Interrupt(ctx); err != nil {
			return "", err
		}
	}
	t, stop := s.translator(turn.Run, o.dir), acp.StopReasonEndTurn
	for e, err := range turn.Events(ctx) {
		if err != nil {
			return "", err
		}
		for _, u := range t.translate(&e, false) {
			if err := s.update(ctx, id, u); err != nil {
				return "", err
			}
		}
		switch d := e.Data.(type) {
		case event.ToolCall:
			s.shows(o, d.CallID)
		case event.RunParked:
			if stop = acp.StopReasonCancelled; !closed(cancelled) {
				stop, err = s.parked(ctx, id, turn.Run, &d)
			}
		case event.RunCompleted:
			stop, err = s.ended(turn.Run, &d.Outcome)
		}
		if err != nil {
			return "", err
		}
	}
	return stop, nil
}

// translator returns the translator for a run, as the editor wants its output.
func (s *Server) translator(run, dir string) *translator {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := newTranslator(run, dir)
	t.terminals = s.terminals
	return t
}

// shows marks a call as sent, so that its question can be asked.
func (s *Server) shows(o *opened, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-o.call(call):
	default:
		close(o.call(call))
	}
}

func (s *Server) update(ctx context.Context, id acp.SessionId, u acp.SessionUpdate) error {
	return s.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: u})
}

// parked returns the stop reason of a run that waits, and says what it waits for.
func (s *Server) parked(ctx context.Context, id acp.SessionId, run string, d *event.RunParked) (acp.StopReason, error) {
	stop := acp.StopReasonEndTurn
	text := fmt.Sprintf("The run waits (%s). '%s runs show %s' says what for.", strings.TrimSpace(string(d.Reason)+" "+d.Detail), s.Command, run)
	switch {
	case d.Reason == event.ParkInterrupted, d.Reason == event.ParkPaused:
		return acp.StopReasonCancelled, nil
	case d.Limit != "":
		stop = acp.StopReasonMaxTurnRequests
		text = fmt.Sprintf("The run waits at its limit %s. '%s runs budget %s' raises it.", d.Limit, s.Command, run)
	case len(d.CallIDs) > 0:
		text = fmt.Sprintf("The run waits for a decision. The next load of the session asks again; '%s runs approve %s %s --resume' approves it.", s.Command, run, d.CallIDs[0])
	}
	return stop, s.update(ctx, id, acp.UpdateAgentMessageText(terminal.Harmless(text)))
}

// ended returns the stop reason of a run that has ended. A failure is an error of the
// request, which an editor shows.
func (s *Server) ended(run string, o *event.Outcome) (acp.StopReason, error) {
	switch {
	case o.Status == event.StatusCancelled:
		return acp.StopReasonCancelled, nil
	case o.Reason == event.ReasonTruncated:
		return acp.StopReasonMaxTokens, nil
	case o.Reason == event.ReasonRefused:
		return acp.StopReasonRefusal, nil
	case o.Limit != "", o.Reason == event.ReasonMaxCycles:
		return acp.StopReasonMaxTurnRequests, nil
	case o.OK || o.Status != event.StatusFailed:
		return acp.StopReasonEndTurn, nil
	}
	text := string(o.Reason)
	if o.Error != nil {
		text = o.Error.Message
	}
	return "", &acp.RequestError{Code: internalError, Message: fmt.Sprintf("Run %s failed: %s", run, terminal.Harmless(text)), Data: map[string]any{"run": run, "reason": o.Reason}}
}

// internalError is the code of JSON-RPC for it.
const internalError = -32603

// replay sends the updates of a run from the journal.
func (s *Server) replay(ctx context.Context, id acp.SessionId, l sessions.Link) error {
	t := s.translator(l.ID, l.Started.Workspace)
	for read, err := range drive.Events(ctx, s.Host.Store, l.ID, 0) {
		if err != nil {
			return err
		}
		for _, u := range t.translate(read.Event, true) {
			if err := s.update(ctx, id, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// askAgain asks the open questions of a parked run in the background, and follows the
// run after the answers.
func (s *Server) askAgain(ctx context.Context, id acp.SessionId, newest journal.Run) {
	waiting, err := s.Host.Waiting(ctx, newest)
	if err != nil {
		s.Log.Warn("open questions cannot be read", "session", id, "error", err)
	}
	if len(waiting) == 0 || s.decides(ctx) != nil {
		return
	}
	o, err := s.session(id)
	if err != nil {
		return
	}
	s.asking.Go(func() {
		ctx := s.serving
		turn, err := s.Host.Ask(ctx, newest, s.asks(id, o, true))
		if err == nil {
			_, err = s.follow(ctx, id, o, turn)
		}
		if err != nil {
			s.Log.Warn("a question cannot be asked again", "session", id, "error", err)
		}
	})
}
