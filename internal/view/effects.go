package view

import (
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// EffectKind is what an effect reaches.
type EffectKind string

// The kinds of effects. A command counts as one also if it writes files or sends.
const (
	EffectCommand EffectKind = "command"
	EffectFiles   EffectKind = "files"
	EffectSent    EffectKind = "sent"
	EffectCall    EffectKind = "call"
)

// Effect is something that a call or a command did outside of the journal. A fork at an
// earlier event does not undo it.
type Effect struct {
	Run string `json:"run"`
	// Pos and Seq are the place and the number of the event before it.
	Pos    int64  `json:"pos"`
	Seq    int64  `json:"seq"`
	CallID string `json:"callId,omitempty"`
	// Step is the step of a workflow whose command it is.
	Step string     `json:"step,omitempty"`
	Kind EffectKind `json:"kind"`
	// Name is the call or the command line.
	Name string `json:"name"`
	// Files are the files that it names for writing, and Hosts the machines that it
	// names or requested.
	Files []string `json:"files,omitempty"`
	Hosts []string `json:"hosts,omitempty"`
	// State is Running if its end is unknown.
	State State `json:"state"`
}

// Effects collects the effects of one run. The zero value is ready to use.
type Effects struct {
	Items []Effect
	calls map[string]event.ToolCall
	// open are the indexes of the effects, by call or command.
	open map[string]int
}

// Add adds an event of the run. Effects count if counts is true; calls must be added
// from the beginning.
func (s *Effects) Add(e *event.Event, counts bool) {
	if s.calls == nil {
		s.calls, s.open = map[string]event.ToolCall{}, map[string]int{}
	}
	switch d := e.Data.(type) {
	case event.ToolCall:
		s.calls[d.CallID] = d
	case event.ToolStarted:
		if call := s.calls[d.CallID]; counts && d.Attempt <= 1 && changes(call) {
			s.begin(d.CallID, called(e, call))
		}
	case event.ToolResult:
		s.end(d.CallID, !d.IsError, d.ErrorType == event.ErrorInDoubt, d.Reached, d.Changed)
		delete(s.calls, d.CallID)
	case event.CommandStarted:
		if counts && d.Attempt <= 1 {
			s.begin(d.ID, Effect{Run: e.Run, Pos: e.Pos, Seq: e.Seq, Step: d.Step, Kind: EffectCommand, Name: firstLine(strings.Join(d.Argv, " "), lineWidth), State: Running})
		}
	case event.CommandFinished:
		s.end(d.ID, d.ExitCode != nil && *d.ExitCode == 0, d.ErrorType == event.ErrorInDoubt, d.Reached, d.Changed)
	}
}

func (s *Effects) begin(id string, f Effect) {
	s.open[id] = len(s.Items)
	s.Items = append(s.Items, f)
}

// end settles an effect with what it reached.
func (s *Effects) end(id string, ok, unknown bool, reached []event.Reach, changed []event.Change) {
	i, known := s.open[id]
	if !known {
		return
	}
	delete(s.open, id)
	f := &s.Items[i]
	switch {
	case unknown:
	case ok:
		f.State = Done
	default:
		f.State = Failed
	}
	for _, r := range reached {
		if r.Denied == "" && !slices.Contains(f.Hosts, r.Host) {
			f.Hosts = append(f.Hosts, r.Host)
		}
	}
	for _, c := range changed {
		if !c.Undone && !slices.Contains(f.Files, c.Path) {
			f.Files = append(f.Files, c.Path)
		}
	}
}

// changes reports whether a call can change anything. A call that starts a run has no
// effect besides those of the run.
func changes(c event.ToolCall) bool {
	switch {
	case c.Agent:
		return false
	case c.Labels.Outgoing:
		return true
	case c.ReadOnly, c.Effect == event.EffectPure:
		return false
	}
	return c.Facts == nil || c.Facts.Risk != event.RiskRead
}

// called returns the effect of a call from its facts.
func called(e *event.Event, c event.ToolCall) Effect {
	f := Effect{Run: e.Run, Pos: e.Pos, Seq: e.Seq, CallID: c.CallID, Kind: EffectCall, Name: firstLine(Label(c), lineWidth), State: Running}
	commands := false
	if c.Facts != nil {
		for _, p := range c.Facts.Paths {
			if p.Write && !slices.Contains(f.Files, p.Path) {
				f.Files = append(f.Files, p.Path)
			}
		}
		f.Hosts, commands = slices.Clone(c.Facts.Hosts), len(c.Facts.Commands) > 0
	}
	switch {
	case commands:
		f.Kind = EffectCommand
	case len(f.Files) > 0:
		f.Kind = EffectFiles
	case c.Labels.Outgoing || len(f.Hosts) > 0:
		f.Kind = EffectSent
	}
	return f
}
