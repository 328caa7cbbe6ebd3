package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/journal"
)

// JournalError is returned for a run that is not started or resumed because one
// of its tools could write its journal without asking. A tool that writes the
// journal could approve any call.
type JournalError struct {
	// File is the journal's file, or one that belongs to it.
	File string
	// Tool is the tool that could write it. Agent is the offered agent that has the
	// tool, if it is not the run's own.
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

// guardJournal returns an error if a tool of the agent, under the rules of its run, or of
// an agent that it offers, may write the files of a journal without asking.
func (a Agent) guardJournal(store journal.Store, rules policy.Rules) error {
	files := store.Files()
	if e := a.unaskedWrite(files, rules); e != nil {
		return e
	}
	for _, o := range a.Agents {
		err := o.Agent.guardJournal(store, o.Agent.rules())
		if e, ok := errors.AsType[*JournalError](err); ok {
			e.Agent = cmp.Or(e.Agent, o.Name)
			return e
		}
	}
	return nil
}

// guardJournalOf is guardJournal for a resumed run: the rules that the run began with
// apply, even if the agent's have changed, to its children as well. The results of the
// children must still be possible, too.
func (a Agent) guardJournalOf(ctx context.Context, store journal.Store, env perform.Env, started event.RunStarted) error {
	cfg, err := begunWith(started)
	if err != nil {
		return err
	}
	guardChildren(ctx, store, env, a.Agents)
	return a.guardJournal(store, cfg.Policy)
}

// guardChildren applies guardJournalOf to the resumed runs of agents.
func guardChildren(ctx context.Context, store journal.Store, env perform.Env, agents []AgentTool) {
	for _, o := range agents {
		child := env.Children[o.Name]
		resume := child.Resume
		child.Resume = func(run string, started event.RunStarted) (perform.Env, error) {
			env, err := resume(run, started)
			if err == nil {
				err = o.Agent.guardJournalOf(ctx, store, env, started)
			}
			if e, ok := errors.AsType[*JournalError](err); ok {
				e.Agent = cmp.Or(e.Agent, o.Name)
			}
			if err == nil {
				err = stillAnswers(ctx, store, run, env, started)
			}
			return env, err
		}
		env.Children[o.Name] = child
	}
}

func begunWith(started event.RunStarted) (cfg agent.Config, err error) {
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return cfg, fmt.Errorf("the configuration that the run began with: %w", err)
	}
	return cfg, nil
}

func (a Agent) unaskedWrite(files []string, rules policy.Rules) *JournalError {
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
