package pawl

import (
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// JournalError is returned for a run that does not begin or go on because one
// of its tools could write its journal without anybody being asked. Whoever
// writes that can decide about any call in a person's place.
type JournalError struct {
	// File is the journal's, or one that belongs to it.
	File string
	// Tool is the one that could write it, and Agent the offered agent that has
	// it, if it is not the run's own.
	Tool, Agent string
}

// Error names the file and the tool, and says what to do.
func (e *JournalError) Error() string {
	whose := ""
	if e.Agent != "" {
		whose = " of the agent " + e.Agent
	}
	return fmt.Sprintf("the tool %s%s could write the journal (%s) without asking, and so approve its own calls; "+
		"keep the journal in a directory beside those that tools work in, and where a sandbox reaches that, hide it there", e.Tool, whose, e.File)
}

// keepsOff fails where a tool of the agent, or of one that it offers, may write
// the files of a journal unasked.
func (a Agent) keepsOff(store journal.Store) error {
	files := store.Files()
	if len(files) == 0 {
		return nil
	}
	if e := a.unasked(files); e != nil {
		return e
	}
	for _, o := range a.Agents {
		if e := o.Agent.unasked(files); e != nil {
			e.Agent = o.Name
			return e
		}
	}
	return nil
}

func (a Agent) unasked(files []string) *JournalError {
	rules := a.rules()
	for _, t := range a.Tools {
		if t.Writing == nil {
			continue
		}
		for _, file := range files {
			for _, facts := range t.Writing(file) {
				v := rules.Decide(&event.ToolCall{Tool: t.Name, Facts: &facts})
				if v.Decision == event.DecisionAllow || v.Decision == event.DecisionSandbox {
					return &JournalError{File: file, Tool: t.Name}
				}
			}
		}
	}
	return nil
}
