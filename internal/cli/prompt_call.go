package cli

import (
	"context"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// askedCall is what the journal has about the call of a question.
type askedCall struct {
	// dir is the workspace of its run, and agent the name of a run below another one.
	dir, agent string
	commands   []event.Command
	taint      event.Taint
}

// mostCommands bounds the simple commands that a question shows.
const mostCommands = 20

// callOf returns what the journal has about the call of a question.
func (s *session) callOf(ctx context.Context, id string) (c askedCall) {
	run, _ := cutCall(id)
	row, err := s.store.Run(ctx, run)
	if err != nil {
		return c
	}
	if row.Parent != "" {
		c.agent = row.Name
	}
	if started, err := s.controller.StartOf(ctx, run); err == nil {
		c.dir = started.Workspace
	}
	if state, err := s.engine.State(ctx, run); err == nil {
		c.taint = state.Taint
	}
	for e, err := range drive.Backwards(ctx, s.store, row, drive.OneOf(event.TypeToolCall)) {
		if err != nil {
			return c
		}
		if call, is := e.Data.(event.ToolCall); is && call.CallID == id {
			if call.Facts != nil {
				c.commands = call.Facts.Commands
			}
			return c
		}
	}
	return c
}

// lines describes the call: its run, what that has read, and the commands of a command line.
func (c askedCall) lines() (lines []string) {
	if c.agent != "" {
		lines = append(lines, "the call of "+oneLine(c.agent))
	}
	if c.taint.Untrusted != nil {
		lines = append(lines, "after untrusted text: "+oneLine(tookIn(c.taint.Untrusted)))
	}
	if c.taint.Untrusted != nil && c.taint.Private != nil {
		lines = append(lines, "and private data: "+oneLine(tookIn(c.taint.Private)))
	}
	for i, cmd := range c.commands {
		if i == mostCommands {
			lines = append(lines, "… and "+plural(len(c.commands)-i, "more command"))
			break
		}
		line := "$ " + terminal.Marked(strings.Join(cmd.Words, " "))
		if cmd.ReadOnly {
			line += "  (only reads)"
		}
		lines = append(lines, oneLine(line))
	}
	return lines
}
