package pawl

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/engine"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/machine/agent"
	"github.com/pawlrun/pawl/policy"
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

// keepsOff fails where a tool of the agent, whose run has these rules, or of an
// agent that it offers, may write the files of a journal unasked.
func (a Agent) keepsOff(store journal.Store, rules policy.Rules) error {
	files := store.Files()
	if e := a.unasked(files, rules); e != nil {
		return e
	}
	for _, o := range a.Agents {
		if e := o.Agent.unasked(files, o.Agent.rules()); e != nil {
			e.Agent = o.Name
			return e
		}
	}
	return nil
}

// stillKeepsOff is keepsOff for a run that goes on: it is judged by the rules
// that it began with, whatever the agent's are now, and so are its children, which
// must be answered too.
func (a Agent) stillKeepsOff(ctx context.Context, store journal.Store, env engine.Env, started event.RunStarted) error {
	cfg, err := begunWith(started)
	if err != nil {
		return err
	}
	for _, o := range a.Agents {
		child := env.Children[o.Name]
		child.Resume = func(run string, started event.RunStarted) (engine.Env, error) {
			cfg, err := begunWith(started)
			if err != nil {
				return engine.Env{}, err
			}
			if e := o.Agent.unasked(store.Files(), cfg.Policy); e != nil {
				e.Agent = o.Name
				return engine.Env{}, e
			}
			env, err := o.Agent.again()
			if err == nil {
				err = stillAnswers(ctx, store, run, env, started)
			}
			return env, err
		}
		env.Children[o.Name] = child
	}
	return a.keepsOff(store, cfg.Policy)
}

func begunWith(started event.RunStarted) (cfg agent.Config, err error) {
	if err := json.Unmarshal(started.Config, &cfg); err != nil {
		return cfg, fmt.Errorf("the configuration that the run began with: %w", err)
	}
	return cfg, nil
}

func (a Agent) unasked(files []string, rules policy.Rules) *JournalError {
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
