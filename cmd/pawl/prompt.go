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
	"unicode/utf8"

	"github.com/pawlrun/pawl/control"
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
	// check is [control.Desk.CheckArgs].
	check func(context.Context, control.Pending, json.RawMessage) error
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
func (s *session) asking(env *engine.Env, mode agent.ApproveMode, p *printer) {
	env.AskInTurn = true
	switch {
	case mode == agent.ApproveAll:
		env.Ask = answerAll(event.ApprovalApproved, "--approve all")
	case mode == agent.ApproveDeny:
		env.Ask = answerAll(event.ApprovalRejected, "--approve deny")
	case screenOf(s.app.in, os.Getenv).terminal && p.screen.terminal:
		p.asks = true
		env.Ask = (&asker{keys: listen(s.app.in), p: p, by: whoAmI(), check: s.desk.CheckArgs}).ask
	default:
		p.cannotAsk = true
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
	if why := askedBy(pending); why != "" {
		q.p.ask(faint, "  "+why+"\n")
	}
	d, err := q.decide(ctx, pending)
	if ctx.Err() != nil {
		q.withdrawn = time.Now()
		q.p.withdraw(" (no answer is needed any more)")
		return d, ctx.Err()
	}
	q.withdrawn = time.Time{}
	if err != nil {
		q.p.withdraw(" (no answer)")
		return d, err
	}
	q.p.answered()
	d.Approver = q.by
	return d, err
}

// askedBy says which setting of the agent file, or which rule of Pawl, makes a
// call wait for a decision, and why.
func askedBy(d event.ToolPendingApproval) string {
	var parts []string
	if d.Rule != "" {
		parts = append(parts, "asked by "+d.Rule)
	}
	if d.Reason != "" {
		parts = append(parts, "because "+d.Reason)
	}
	return oneLine(strings.Join(parts, ", "))
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
func (q *asker) decide(ctx context.Context, pending event.ToolPendingApproval) (d event.ToolApprovalResolved, err error) {
	for d.Kind == "" {
		line, err := q.line(ctx, "  [y]es, [n]o, n and a reason, [e]dit: ")
		if err != nil {
			return d, err
		}
		switch d = decision(line); d.Kind {
		case "":
			q.p.ask(faint, "  answer y to approve, n to reject, \"n REASON\" to tell the model why, or e to change the arguments\n")
		case event.ApprovalEdited:
			if d.Args, err = q.edit(ctx, pending); err != nil {
				return d, err
			}
			if d.Args == nil {
				d.Kind = ""
			}
		}
	}
	return d, nil
}

// line asks for one line of text, until what is typed is some.
func (q *asker) line(ctx context.Context, question string) (string, error) {
	for {
		q.p.ask(bold, question)
		line, err := q.keys.line(ctx)
		if err != nil || utf8.ValidString(line) {
			return line, err
		}
		q.p.ask(red, "  the answer is not UTF-8: set this terminal to UTF-8, or keep to ASCII\n")
	}
}

// edit asks for other arguments, until the tool takes them: a slip must not use
// the question up. An empty line keeps those of the call and goes back to it.
func (q *asker) edit(ctx context.Context, pending event.ToolPendingApproval) (json.RawMessage, error) {
	run, _ := cutCall(pending.CallID)
	for {
		line, err := q.line(ctx, "  arguments as a JSON object on one line: ")
		if err != nil || strings.TrimSpace(line) == "" {
			return nil, err
		}
		args := json.RawMessage(strings.TrimSpace(line))
		wrong, is := errors.AsType[*control.ArgsError](q.check(ctx, control.Pending{Run: run, ToolPendingApproval: pending}, args))
		if !is { // also where it cannot be known here: the run checks again
			return args, nil
		}
		q.p.ask(red, "  "+oneLine(wrong.Message)+"\n")
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
