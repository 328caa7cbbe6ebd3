package pawl

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Status is the state of a run: running, parked, or how it ended.
type Status string

// The statuses. The last four are those of an [Outcome].
const (
	StatusRunning   Status = "running"
	StatusParked    Status = "parked"
	StatusCompleted        = Status(event.StatusCompleted)
	StatusStopped          = Status(event.StatusStopped)
	StatusFailed           = Status(event.StatusFailed)
	StatusCancelled        = Status(event.StatusCancelled)
)

// State is the state of a run. It is a copy: changing it does not change the
// run.
type State struct {
	// Run is the run's id.
	Run    string
	Status Status
	// Messages is the conversation so far, without the system text.
	Messages []llm.Message
	// Turns counts the cycles that have begun.
	Turns int
	// Usage is the sum over all turns.
	Usage llm.Usage
	// Cost is nil until a model has been called.
	Cost *Cost
	// Outcome is how the run ended, nil before that.
	Outcome *Outcome
	// Parked is what a parked run waits for; Pending are the calls that wait for a
	// decision, first those of the run and then those of its descendants. Each may be
	// decided on this run.
	Parked  *event.RunParked
	Pending []Approval
}

// Cost is the cost of a run so far.
type Cost struct {
	llm.Cost
	Usage llm.Usage
}

// Text returns the run's final output, empty before the end.
func (s State) Text() string {
	if s.Outcome == nil {
		return ""
	}
	return s.Outcome.FinalOutput
}

// Err returns nil for a run that ended well ([Outcome.OK]). Otherwise it returns the
// reason: the error that made the run fail, the limit that stopped it, or what it waits
// for.
func (s State) Err() error {
	o := s.Outcome
	switch {
	case o != nil && o.OK:
		return nil
	case o != nil && o.Error != nil:
		return fmt.Errorf("pawl: run %s %s: %s: %s", s.Run, o.Status, o.Reason, o.Error.Message)
	case o != nil:
		return fmt.Errorf("pawl: run %s %s: %s", s.Run, o.Status, o.Reason)
	case s.Parked != nil:
		return fmt.Errorf("pawl: run %s is parked: %s", s.Run, s.Parked.Reason)
	}
	return fmt.Errorf("pawl: run %s has not ended", s.Run)
}

func stateOf(run string, m machine.Conversing, s machine.State) State {
	out := State{
		Run: run, Status: StatusRunning, Turns: s.Cycle, Usage: s.Usage,
		Messages: []llm.Message{}, Parked: clone(s.Parked), Outcome: clone(s.Outcome),
	}
	if m != nil {
		for _, message := range m.Transcript() {
			out.Messages = append(out.Messages, copyMessage(message))
		}
	}
	for _, q := range s.Pending {
		if own, is := q.Clone().Asking.(Approval); is {
			out.Pending = append(out.Pending, own)
		}
	}
	if o := out.Outcome; o != nil {
		o.Cost, o.Index, o.Error = clone(o.Cost), clone(o.Index), clone(o.Error)
	}
	switch {
	case s.Outcome != nil:
		out.Status = Status(s.Outcome.Status)
	case s.Parked != nil:
		out.Status = StatusParked
		out.Parked.CallIDs, out.Parked.Until = slices.Clone(s.Parked.CallIDs), clone(s.Parked.Until)
	}
	if called(out) {
		out.Cost = &Cost{Cost: s.Cost, Usage: s.Usage}
	}
	return out
}

// addBelow adds the calls of descendants that wait for a decision. It omits a run that
// cannot be read, so that the others can be decided.
func (s *State) addBelow(ctx context.Context, store journal.Store) error {
	past := drive.Past{Store: store, Machines: versions.Make}
	below, err := past.Below(ctx, s.Run)
	if err != nil {
		return fmt.Errorf("pawl: %w", err)
	}
	for _, r := range below {
		if r.State == journal.Ended || r.State == journal.Queued || r.State == journal.Paused {
			continue
		}
		asked, err := past.Questions(ctx, r.Run)
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("pawl: %w", err)
		}
		for _, q := range asked {
			if call, is := q.Asking.(Approval); is {
				s.Pending = append(s.Pending, call)
			}
		}
	}
	return nil
}

// called reports whether a model has been called.
func called(s State) bool {
	if s.Outcome != nil {
		return s.Outcome.Cost != nil
	}
	return s.Usage != llm.Usage{}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func copyMessage(m *llm.Message) llm.Message {
	out := llm.Message{Role: m.Role, Origin: m.Origin, Parts: make(llm.Parts, len(m.Parts))}
	for i, p := range m.Parts {
		out.Parts[i] = copyPart(p)
	}
	return out
}

func copyPart(p llm.Part) llm.Part {
	switch p := p.(type) {
	case llm.Text:
		p.Raw = bytes.Clone(p.Raw)
		return p
	case llm.Reasoning:
		p.Raw = bytes.Clone(p.Raw)
		return p
	case llm.Media:
		p.Data = bytes.Clone(p.Data)
		return p
	case llm.ToolCall:
		p.Args, p.Raw = bytes.Clone(p.Args), bytes.Clone(p.Raw)
		return p
	case llm.ToolResult:
		p.Media, p.Tools = slices.Clone(p.Media), slices.Clone(p.Tools)
		for i := range p.Media {
			p.Media[i].Data = bytes.Clone(p.Media[i].Data)
		}
		return p
	case llm.Item:
		p.Raw = bytes.Clone(p.Raw)
		return p
	}
	return p
}
