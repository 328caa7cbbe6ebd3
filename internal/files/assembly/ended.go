package assembly

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// ErrNotEnded is returned for a run that can still continue on its own.
var ErrNotEnded = errors.New("pawl: the run has not ended; resume it instead")

// Ended is an ended run, read from its journal, that another run may continue.
type Ended struct {
	// Started is the first event, with the changes of a fork.
	Started event.RunStarted
	Machine agent.Configured
	// From is the reference that a continuing run records.
	From event.ContinuedFrom
}

// Load reads an ended run. The error wraps [ErrNotEnded] if the run has not ended.
func Load(ctx context.Context, store journal.Store, run string) (*Ended, error) {
	fail := func(err error) (*Ended, error) { return nil, fmt.Errorf("pawl: load run %s: %w", run, err) }
	old, files := &Ended{From: event.ContinuedFrom{Run: run}}, map[string]string{}
	for read, err := range drive.Events(ctx, store, run, 0) {
		if err == nil {
			err = old.apply(read.Event)
		}
		if err != nil {
			return fail(err)
		}
		old.From.Seq = read.Event.Seq
		for _, f := range event.FilesSeen(read.Event.Data) {
			files[f.Path] = f.Digest
		}
	}
	if old.Machine == nil {
		return fail(journal.ErrNotFound)
	}
	state := old.Machine.State()
	if state.Phase != machine.Ended {
		return nil, fmt.Errorf("%w: %s", ErrNotEnded, run)
	}
	var err error
	if old.From.History, err = old.Machine.Conversation(); err != nil {
		return fail(err)
	}
	old.From.Root, old.From.Taint = old.Machine.Workload(), state.Taint
	for _, path := range slices.Sorted(maps.Keys(files)) {
		old.From.Files = append(old.From.Files, event.FileSeen{Path: path, Digest: files[path]})
	}
	return old, nil
}

func (e *Ended) apply(ev *event.Event) error {
	switch d := ev.Data.(type) {
	case event.RunStarted:
		m, err := versions.Make(d.Machine)
		if err != nil {
			return err
		}
		conversing, ok := m.(agent.Configured)
		if !ok {
			return fmt.Errorf("machine %s is no agent's", d.Machine)
		}
		e.Started, e.Machine = d, conversing
	case event.RunPlaced:
		e.Started = e.Started.Placed(d)
	case event.RunForked:
		e.Started = e.Started.Forked(d)
	}
	if e.Machine == nil {
		return fmt.Errorf("its journal begins with %s", ev.Type())
	}
	return e.Machine.Apply(ev)
}

// Answered reports whether the conversation ends with an answer of the model. Providers
// reject such a conversation, so another run needs a new message.
func (e *Ended) Answered() bool {
	last := len(e.From.History) - 1
	return last >= 0 && e.From.History[last].Role == llm.RoleAssistant
}
