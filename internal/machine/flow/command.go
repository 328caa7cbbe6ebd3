package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/plan"
)

// mostOutput limits a command's output in the journal's event. The whole output is
// stored separately.
const mostOutput = 30_000

// command requests a program for a step. lasts limits its time; 0 means no limit.
func (m *Machine) command(id string, n *node, c *plan.Command, lasts time.Duration, then func(*event.CommandFinished)) {
	if c.Timeout > 0 && (lasts == 0 || c.Timeout < lasts) {
		lasts = c.Timeout
	}
	argv, err := m.argv(n, c.Argv)
	if err != nil { // a command with a missing value does not start
		argv = c.Argv
	}
	env := m.environment(n)
	m.requests.add("command "+id, func() []machine.Action {
		return m.Command(machine.RunCommand{
			ID: id, Argv: argv, Env: env, WallLimit: lasts, MaxOutputChars: mostOutput, WholeJSON: m.cfg.Edition > 0,
			Step: n.id, Worktree: n.step().Command != nil && n.isolated(),
		})
	}, func(d event.Data) {
		ended := d.(event.CommandFinished)
		then(&ended)
	})
}

const notWanted = "the workflow does not want this step any more"

// dropCommand removes the request for a command that has not started, together with its
// question, and reports whether there was one. A started command runs to its end or its
// limit.
func (m *Machine) dropCommand(id string) bool {
	if m.running[id] {
		return false
	}
	_, had := m.requests.drop("command " + id)
	if asked := m.Withdraw(id, notWanted); len(asked) > 0 {
		m.requests.add("withdraw "+id, func() []machine.Action { return asked }, nil)
	}
	return had
}

func (m *Machine) startCommand(n *node) {
	id := n.child
	m.record("start "+n.id, event.StepStarted{Step: n.id, Attempt: n.attempt, Index: n.in.item()}, func(event.Data) {
		m.began(n)
		var left time.Duration
		if n.timeout != "" {
			left = max(n.deadline.Sub(m.Now), time.Millisecond)
		}
		m.command(id, n, n.step().Command, left, func(d *event.CommandFinished) {
			n.taint = n.taint.With(m.tookIn(d)).With(m.handed(n, n.step().Command.Argv))
			end := event.StepFinished{Status: event.StepStatusCompleted, Error: d.Failure(), Worktree: d.Worktree}
			end.Content, end.Result = printed(d, m.cfg.Edition)
			if end.Error != nil {
				end.Status = event.StepStatusFailed
			}
			if n.stop != nil && end.Error != nil {
				end.Status, end.Error = n.stop.Status, n.stop.Error
			}
			m.finish(n, end)
		})
	})
}

func (m *Machine) tookIn(d *event.CommandFinished) event.Taint {
	return event.TaintSource{Run: m.ID, CallID: d.ID, Tool: machine.CommandTool}.Brings(d.Untrusted, d.Private)
}

// printed converts a command's result to a step's: the content is the output without
// trailing newlines; the result is the output if it is JSON, and the exit otherwise.
func printed(d *event.CommandFinished, edition int) (content string, result json.RawMessage) {
	if content = d.Output; edition > 0 {
		content = strings.TrimRight(content, "\r\n")
	}
	switch value := []byte(strings.TrimSpace(content)); {
	case edition > 0 && json.Valid(value):
		result = value
	case d.ExitCode != nil:
		result = fmt.Appendf(nil, `{"exitCode":%d}`, *d.ExitCode)
	}
	return content, result
}

// runStop runs the command of a loop's stop condition.
func (m *Machine) runStop(l *loop) {
	s, stop := l.finished, l.running
	l.running = nil
	if _, err := m.argv(l.of, stop.Command.Argv); err != nil {
		m.endLoop(l, &event.Failure{Class: classMissing, Message: err.Error()})
		return
	}
	l.command = fmt.Sprintf("%s/%d", s.key, l.asked)
	m.busy(l.of.in, "", 1)
	m.command(l.command, l.of, stop.Command, 0, func(d *event.CommandFinished) {
		l.command = ""
		m.busy(l.of.in, "", -1)
		l.taint = l.taint.With(m.tookIn(d)).With(m.handed(l.of, stop.Command.Argv))
		l.tested(d.Output)
		end := l.last()
		end.checks = append(end.checks, Section{
			Title: "Command " + strings.Join(stop.Command.Argv, " "), From: l.of.id + ".command", Content: d.Output, Reason: message(d.Failure()),
		})
		switch {
		case l.of.stop != nil:
			m.endStopped(l)
		case d.ErrorType == event.ErrorDenied, d.ErrorType == event.ErrorUnavailable, m.cfg.Plan.Refine && cannotShow(d, stop.Command):
			m.endLoop(l, m.refusal(d))
		default:
			m.checked(l, s, l.asked, d.Failure() == nil, message(d.Failure()))
		}
	})
}

func message(f *event.Failure) string {
	if f == nil {
		return ""
	}
	return f.Message
}
