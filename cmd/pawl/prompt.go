package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine/agent"
)

// asker puts approvals to the person at the terminal, one at a time.
type asker struct {
	lines <-chan string
	p     *printer
	by    string
	mu    sync.Mutex
}

// askFunc is the form in which an engine asks.
type askFunc = func(context.Context, event.ToolPendingApproval) (event.ToolApprovalResolved, error)

// asking returns who answers gated calls, or nil where nobody can be asked.
// deny and all are the owner's answers, given beforehand.
func (a *app) asking(mode agent.ApproveMode, p *printer) askFunc {
	switch mode {
	case agent.ApproveAll:
		return answerAll(event.ApprovalApproved, "--approve all")
	case agent.ApproveDeny:
		return answerAll(event.ApprovalRejected, "--approve deny")
	}
	if !screenOf(a.in, os.Getenv).terminal || !p.screen.terminal {
		return nil
	}
	q := &asker{lines: readLines(a.in), p: p, by: whoAmI()}
	return q.ask
}

func answerAll(kind event.ApprovalKind, by string) askFunc {
	return func(context.Context, event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
		return event.ToolApprovalResolved{Kind: kind, Approver: by, Reason: "decided by the flag " + by}, nil
	}
}

// readLines reads in the background, because a read of a terminal cannot be
// taken back when the question has become void.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

var errNoAnswer = errors.New("nobody answered at the terminal")

func (q *asker) ask(ctx context.Context, pending event.ToolPendingApproval) (event.ToolApprovalResolved, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil {
		return event.ToolApprovalResolved{}, ctx.Err()
	}
	q.p.line(yellow, fmt.Sprintf("approve %s %s?", pending.Tool, harmless(string(pending.Args))))
	if pending.Reason != "" {
		q.p.line(faint, "  "+harmless(pending.Reason))
	}
	defer q.p.answered()
	for {
		line, err := q.line(ctx, "  [y]es, [n]o, [e]dit, or why not: ")
		if err != nil {
			return event.ToolApprovalResolved{}, err
		}
		d, ok := decision(line)
		if d.Kind == event.ApprovalEdited {
			if d.Args, err = q.edit(ctx); err != nil {
				return event.ToolApprovalResolved{}, err
			}
			ok = d.Args != nil
		}
		if ok {
			d.Approver = q.by
			return d, nil
		}
	}
}

// line asks for one line of text.
func (q *asker) line(ctx context.Context, question string) (string, error) {
	q.p.ask(question)
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line, ok := <-q.lines:
		if !ok {
			return "", errNoAnswer
		}
		return line, nil
	}
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
		if err = json.Unmarshal([]byte(line), &object); err == nil {
			return json.RawMessage(strings.TrimSpace(line)), nil
		}
		q.p.line(red, "  "+err.Error())
	}
}

// decision reads an answer. Only a clear yes approves; any other sentence is
// the reason of a rejection.
func decision(line string) (event.ToolApprovalResolved, bool) {
	line = strings.TrimSpace(line)
	switch strings.ToLower(line) {
	case "", "?":
		return event.ToolApprovalResolved{}, false
	case "y", "yes":
		return event.ToolApprovalResolved{Kind: event.ApprovalApproved}, true
	case "n", "no":
		return event.ToolApprovalResolved{Kind: event.ApprovalRejected, Reason: "declined"}, true
	case "e", "edit":
		return event.ToolApprovalResolved{Kind: event.ApprovalEdited}, true
	}
	for _, no := range []string{"n ", "no ", "no, "} {
		if rest, ok := strings.CutPrefix(line, no); ok {
			line = strings.TrimSpace(rest)
			break
		}
	}
	return event.ToolApprovalResolved{Kind: event.ApprovalRejected, Reason: line}, true
}

// whoAmI names the person in what is recorded.
func whoAmI() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
