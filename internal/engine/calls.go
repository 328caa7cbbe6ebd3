package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/journal"
)

// calls starts effects: calls of models, tools, hooks and commands, each after
// its intent.
type calls struct {
	*core
	above    *parentRun
	children *children
	requests drive.Requests
	// given is the first cycle whose messages from the environment ([perform.Env.Inputs])
	// are not journalled.
	given int
}

// giveInputs journals the environment's messages up to a cycle whose answer is
// on the way, as if they had arrived meanwhile, so that the decision after the
// answer includes them.
func (cs *calls) giveInputs(cycle int) error {
	for ; cs.given <= cycle; cs.given++ {
		for _, said := range cs.env.Inputs[cs.given] {
			if err := cs.stage(cs.env.Record.Blobs.Detach(said)); err != nil {
				return err
			}
		}
	}
	return nil
}

const modelEffect = "model"

// beginModel journals the intent of a model call and queues the call. A call
// whose time has not come sets the alarm instead.
func (cs *calls) beginModel(a *machine.CallModel) (bool, error) {
	if a.NotBefore.After(cs.env.Clock.Now()) {
		cs.alarm.set(a.NotBefore)
		cs.alarm.waiting = journal.WaitRetry
		return false, nil
	}
	if !a.Admission.Given() {
		return false, fmt.Errorf("engine: run %s: attempt %d at %s was not admitted by a budget", cs.run.id, a.Attempt, a.Target)
	}
	req := &a.Request
	model, err := cs.env.Prepare(&cs.requests, a.Target, req)
	intent := event.ModelRequested{Attempt: a.Attempt, Model: a.Target, Purpose: a.Purpose, Withheld: a.Withheld}
	if req.Encoded != nil {
		intent.RequestDigest, intent.RequestBytes = req.Encoded.Digest, req.Encoded.Len()
		intent.Prompt = cs.log.cache.Requested(a, model, req)
	}
	if stageErr := cs.stage(intent); stageErr != nil {
		return false, stageErr
	}
	if inputsErr := cs.giveInputs(a.Cycle); inputsErr != nil {
		return false, inputsErr
	}
	if err != nil {
		return true, cs.stage(cs.env.Unprepared(a, err))
	}
	cs.effects.add(func(work context.Context) {
		cs.effects.launch(work, effect{id: modelEffect, Effect: cs.env.AskModel(a, model, req, cs.log.cycle, cs.run.turns, cs.run.names)})
	})
	return true, nil
}

// beginTool journals the intent of a tool call and queues the call. A call whose
// time has not come sets the alarm instead.
func (cs *calls) beginTool(a machine.RunTool) (bool, error) {
	if a.NotBefore.After(cs.env.Clock.Now()) {
		cs.alarm.set(a.NotBefore)
		if len(cs.effects.pending) == 0 {
			cs.alarm.waiting = journal.WaitRetry
		}
		return false, nil
	}
	if now, changed := cs.changedSince(a); changed {
		return true, cs.stage(now)
	}
	if err := cs.stage(event.ToolStarted{CallID: a.CallID, Attempt: a.Attempt, Key: a.Key}); err != nil {
		return false, err
	}
	cs.effects.add(func(work context.Context) {
		cs.effects.launch(work, effect{id: a.CallID, Effect: cs.env.RunTool(a, cs.log.cycle, cs.links(a.CallID))})
	})
	return true, nil
}

// changedSince returns new facts about an approved call if a file that it runs
// has changed since the approval.
func (cs *calls) changedSince(a machine.RunTool) (now event.ToolCall, changed bool) {
	if a.Again == nil {
		return now, false
	}
	now = cs.env.Resolve(*a.Again)
	return now, now.Facts == nil || !slices.Equal(now.Facts.Runs, a.Facts.Runs)
}

// hookEffect is the id of the effect that calls a hook.
func hookEffect(id string) string { return "hook:" + id }

// beginHook queues a hook that is not under way. A hook leaves one record, its
// result: a hook that a crash interrupts runs again.
func (cs *calls) beginHook(a machine.RunHook) {
	if cs.effects.underWay[hookEffect(a.ID)] {
		return
	}
	cs.effects.mark(hookEffect(a.ID))
	cs.effects.add(func(work context.Context) {
		cs.effects.launch(work, effect{id: hookEffect(a.ID), Effect: cs.env.RunHook(a)})
	})
}

// beginCommand journals the intent of a command and queues its start. For a
// command that has not been judged, it journals the decision of policy, which
// the machine then uses.
func (cs *calls) beginCommand(a machine.RunCommand) (changed bool, err error) {
	switch {
	case cs.env.Commands == nil:
		return true, cs.stage(perform.NoCommands(a))
	case a.Verdict == nil && a.Worktree:
		cs.judgeApart(a)
		return false, nil
	case a.Verdict == nil:
		return true, cs.stage(cs.env.Judge(a, cs.machine.State().Taint))
	}
	if !a.Worktree && cs.env.Changed(a) {
		return true, cs.stage(cs.env.Judge(a, cs.machine.State().Taint))
	}
	intent := event.CommandStarted{ID: a.ID, Argv: a.Argv, Dir: ".", Attempt: a.Attempt, Effect: a.Effect, Step: a.Step}
	if err := cs.stage(intent); err != nil {
		return true, err
	}
	cs.effects.add(func(work context.Context) {
		cs.effects.launch(work, effect{id: "command " + a.ID, Effect: cs.env.RunCommand(a)})
	})
	return true, nil
}

// judgeApart judges a command in its worktree, which takes time to make.
func (cs *calls) judgeApart(a machine.RunCommand) {
	id := "judge " + a.ID
	if cs.effects.underWay[id] {
		return
	}
	cs.effects.mark(id)
	taint := cs.machine.State().Taint
	cs.effects.add(func(work context.Context) {
		cs.effects.launch(work, effect{id: id, Effect: cs.env.JudgeApart(a, taint)})
	})
}
