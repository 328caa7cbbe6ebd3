package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
)

// asker puts approvals to the person at the terminal. It is asked about one call
// after another (engine.Env.AskInTurn).
type asker struct {
	keys *keyboard
	p    *printer
	by   string
	// withdrawn is when the last question was taken back, zero when it was
	// answered.
	withdrawn time.Time
}

// misfire is how long after a question that was taken back no other one is put:
// whoever was about to answer the old one must not answer the new one with it.
const misfire = time.Second

// patient is how long a question waits for what led to it to be written: calls of
// other runs of a tree are asked about here, too, and their lines are not.
const patient = time.Second

// asking makes an environment ask: there is somebody at the terminal, the owner
// gave the answers beforehand (deny, all), or nobody can be asked.
func (a *app) asking(env *engine.Env, mode agent.ApproveMode, p *printer) {
	env.AskInTurn = true
	switch {
	case mode == agent.ApproveAll:
		env.Ask = answerAll(event.ApprovalApproved, "--approve all")
	case mode == agent.ApproveDeny:
		env.Ask = answerAll(event.ApprovalRejected, "--approve deny")
	case screenOf(a.in, os.Getenv).terminal && p.screen.terminal:
		p.asks = true
		env.Ask = (&asker{keys: listen(a.in), p: p, by: whoAmI()}).ask
	}
}

func answerAll(kind event.ApprovalKind, by string) func(context.Context, event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
	return func(context.Context, event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
		return event.ToolApprovalResolved{Kind: kind, Approver: by, Reason: "decided by the flag " + by}, nil
	}
}

func (q *asker) ask(ctx context.Context, pending event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
	if err := q.pause(ctx); err != nil {
		return event.ToolApprovalResolved{}, err
	}
	q.catchUp(ctx, pending.CallID)
	q.keys.begin()
	defer q.keys.end()
	q.p.ask(yellow, fmt.Sprintf("approve %s: %s %s?\n", pending.CallID, pending.Tool, harmless(string(pending.Args))))
	if pending.Reason != "" {
		q.p.ask(faint, "  "+strings.ReplaceAll(harmless(pending.Reason), "\n", " ")+"\n")
	}
	d, err := q.decide(ctx)
	if ctx.Err() != nil {
		q.withdrawn = time.Now()
		q.p.withdraw(" (no answer is needed any more)")
		return d, ctx.Err()
	}
	q.withdrawn = time.Time{}
	q.p.answered()
	d.Approver = q.by
	return d, err
}

// pause waits after a question that was taken back.
func (q *asker) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(q.withdrawn.Add(misfire))):
	}
	return ctx.Err()
}

// catchUp waits until the person has been shown what the model said before the
// call and what came of earlier ones, which are reasons to decide by.
func (q *asker) catchUp(ctx context.Context, call string) {
	told := q.p.toldOf(call)
	if told == nil {
		return
	}
	select {
	case <-told:
	case <-ctx.Done():
	case <-time.After(patient):
	}
}

// decide asks until there is an answer.
func (q *asker) decide(ctx context.Context) (d event.ToolApprovalResolved, err error) {
	for d.Kind == "" {
		line, err := q.line(ctx, "  [y]es, [n]o, n and a reason, [e]dit: ")
		if err != nil {
			return d, err
		}
		switch d = decision(line); d.Kind {
		case "":
			q.p.ask(faint, "  answer y to approve, n to reject, \"n REASON\" to tell the model why, or e to change the arguments\n")
		case event.ApprovalEdited:
			if d.Args, err = q.edit(ctx); err != nil {
				return d, err
			}
			if d.Args == nil {
				d.Kind = ""
			}
		}
	}
	return d, nil
}

// line asks for one line of text.
func (q *asker) line(ctx context.Context, question string) (string, error) {
	q.p.ask(bold, question)
	return q.keys.line(ctx)
}

// edit asks for other arguments; an empty line keeps those of the call and goes
// back to the question.
func (q *asker) edit(ctx context.Context) (json.RawMessage, error) {
	for {
		line, err := q.line(ctx, "  arguments as a JSON object on one line: ")
		if err != nil || strings.TrimSpace(line) == "" {
			return nil, err
		}
		var object map[string]json.RawMessage
		if err = json.Unmarshal([]byte(line), &object); err == nil && object == nil {
			err = errors.New("null is no object")
		}
		if err == nil {
			return json.RawMessage(strings.TrimSpace(line)), nil
		}
		q.p.ask(red, "  "+harmless(err.Error())+"\n")
	}
}

// decision reads an answer. Only a clear word decides; anything else is no
// answer, because a slip must neither let a call through nor turn it down.
func decision(line string) event.ToolApprovalResolved {
	word, why, _ := strings.Cut(strings.TrimSpace(line), " ")
	why = strings.TrimSpace(why)
	switch word = strings.ToLower(strings.TrimRight(word, ",:")); {
	case word == "n", word == "no":
		if why == "" {
			why = "declined"
		}
		return event.ToolApprovalResolved{Kind: event.ApprovalRejected, Reason: why}
	case why != "":
		return event.ToolApprovalResolved{}
	case word == "y", word == "yes":
		return event.ToolApprovalResolved{Kind: event.ApprovalApproved}
	case word == "e", word == "edit":
		return event.ToolApprovalResolved{Kind: event.ApprovalEdited}
	}
	return event.ToolApprovalResolved{}
}

// whoAmI names the person in what is recorded.
func whoAmI() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
