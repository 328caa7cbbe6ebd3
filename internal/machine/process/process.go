// Package process is the machine of a run that another agent does, as a process of
// its own: its one action is to run that command.
package process

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/tree"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/llm"
)

// Version names the machine's rules; a run's first event pins it.
const Version = "process/1"

// Kind is the kind of the runs that the machine is of.
const Kind = "Process"

// Permission is the rule by which a file lets a run's command run that it names.
const Permission = "runner"

// mostOutput bounds what the journal's event has of the output; the whole is kept
// beside it.
const mostOutput = 30_000

// Config is everything that such a run depends on. It is stored whole in
// run.started.
type Config struct {
	// Name is what the run is called.
	Name string `json:"name,omitempty"`
	// Command is the program with its arguments, without the task.
	Command []string `json:"command"`
	// Permission is as in [machine.RunCommand].
	Permission string `json:"permission,omitempty"`
	// Prompt is how the program is given its task, and Environment names variables
	// that it gets although commands do not. Events says that its output may be a
	// stream of events. The environment of the run's effects goes by them.
	Prompt      string   `json:"prompt,omitempty"`
	Environment []string `json:"environment,omitempty"`
	Events      bool     `json:"events,omitempty"`
	// Idle bounds how long it may print nothing, MaxTime how long it may run beside
	// the limits; 0 bounds nothing.
	Idle    time.Duration `json:"idle,omitempty"`
	MaxTime time.Duration `json:"maxTime,omitempty"`
	// Effect is what running it twice would do.
	Effect event.Effect `json:"effect,omitempty"`
	// Limits bound the run, Policy are the rules by which the command is judged.
	Limits budget.Limits `json:"limits"`
	Policy policy.Rules  `json:"policy"`
}

// Start builds the first event of a run: its configuration pinned, and its task.
func Start(cfg Config, task string) (event.RunStarted, error) {
	raw, err := json.Marshal(cfg)
	if err != nil {
		return event.RunStarted{}, fmt.Errorf("process: encode config: %w", err)
	}
	return event.RunStarted{
		Vocabulary: event.Version, Machine: Version, Kind: Kind, Name: cfg.Name, Config: raw,
		Input: event.InputReceived{Text: task}.Message(), Governance: event.GovernanceExternal,
	}, nil
}

// Machine is the state of one such run.
type Machine struct {
	tree.Run
	cfg  Config
	task string
	// tries counts the attempts at the command that ended at a provider's limit.
	tries int
	// ended is how the newest attempt ended, nil while it has not.
	ended *event.CommandFinished
	// refused is why the run above has no room for it.
	refused *event.BudgetRefused
	// paused says that nothing begins until the run was parked and resumed.
	paused bool
}

var _ machine.Funder = (*Machine)(nil)

// New returns a machine that expects run.started.
func New() *Machine { return &Machine{} }

// Apply folds one event.
func (m *Machine) Apply(e *event.Event) error {
	if err := m.Run.Apply(e); err != nil {
		return err
	}
	switch d := e.Data.(type) {
	case event.RunStarted:
		if err := json.Unmarshal(d.Config, &m.cfg); err != nil {
			return fmt.Errorf("process: config: %w", err)
		}
		if m.Limits = m.cfg.Limits; d.Input != nil {
			m.task = d.Input.Text()
		}
	case event.PauseRequested:
		m.paused = true
	case event.RunResumed:
		m.resumed()
	case event.BudgetRefused:
		m.refused = &d
	case event.CommandFinished:
		if m.ended = m.Ran(m.command()); m.ended != nil && m.reports() {
			m.Use(m.used())
		}
	}
	return nil
}

// resumed goes on: a command that ended at a provider's limit runs again.
func (m *Machine) resumed() {
	m.paused, m.refused = false, nil
	if m.limited() && m.Terminated == nil {
		m.tries++
		m.ended = nil
	}
}

func (m *Machine) limited() bool {
	return m.ended != nil && m.ended.Report != nil && m.ended.Report.Limited != ""
}

// command is the id of the newest attempt at the command. It is that of its
// reservation, too.
func (m *Machine) command() string { return fmt.Sprintf("process.%d", m.tries+1) }

// reports reports whether the program told what its work took.
func (m *Machine) reports() bool {
	r := m.ended.Report
	return r != nil && (r.Usage != nil || r.Cost != nil)
}

func (m *Machine) used() (u llm.Usage, c llm.Cost) {
	if r := m.ended.Report; r.Usage != nil {
		u = *r.Usage
	}
	if r := m.ended.Report; r.Cost != nil {
		c = *r.Cost
	}
	return u, c
}

// Next returns what is due.
func (m *Machine) Next() []machine.Action {
	if m.Parked != nil || m.Outcome != nil {
		return nil
	}
	_, reserved := m.Ledger.Reserved(m.command())
	switch {
	case reserved && (m.ended != nil || m.Terminated != nil && m.Open() == 0):
		return []machine.Action{machine.Record{Data: m.commits()}}
	case m.Terminated != nil && m.Open() == 0:
		return []machine.Action{machine.Record{Data: event.RunCompleted{Outcome: m.outcome()}}}
	}
	due, more := m.Due()
	if !more {
		return due
	}
	return m.OrPark(append(due, m.next(reserved)...))
}

func (m *Machine) next(reserved bool) []machine.Action {
	switch {
	case m.limited():
		return m.park(event.ParkPaused, m.ended.Report.Limited, m.ended.Report.Until)
	case m.ended != nil:
		return m.End(m.ending())
	case m.refused != nil && m.refused.Ask:
		return []machine.Action{machine.Record{Data: event.RunParked{
			Reason: event.ParkInput, ParentLimit: m.refused.Setting, LimitRun: m.refused.Run, AtLeast: m.refused.AtLeast,
			Detail: "the budget of the run above has no room: " + m.refused.Detail,
		}}}
	case m.refused != nil:
		return m.End(event.RunTerminatedBy{Reason: event.BudgetReason(m.refused.Setting), Limit: m.refused.Setting, Kind: "parent", Detail: m.refused.Detail})
	case m.paused && m.Open() == 0:
		return m.park(event.ParkPaused, "", nil)
	case !reserved:
		return m.reserve()
	}
	return m.Command(machine.RunCommand{
		ID: m.command(), Argv: m.cfg.Command, Stdin: []byte(m.task), IdleLimit: m.cfg.Idle, WallLimit: m.cfg.MaxTime,
		Effect: m.cfg.Effect, MaxOutputChars: mostOutput, Permission: m.cfg.Permission,
	})
}

func (m *Machine) park(reason event.ParkReason, detail string, until *time.Time) []machine.Action {
	return []machine.Action{machine.Record{Data: event.RunParked{Reason: reason, Detail: detail, Until: until}}}
}

// reserve makes a reservation of zero, because the process's usage is unknown.
// The usage that it reports is committed under the reservation's id, here and in
// the runs above.
func (m *Machine) reserve() []machine.Action {
	if m.Parent != "" {
		return []machine.Action{machine.Reserve{ID: m.command()}}
	}
	return []machine.Action{machine.Record{Data: event.BudgetReserved{ID: m.command()}}}
}

func (m *Machine) commits() event.BudgetCommitted {
	d := event.BudgetCommitted{ID: m.command()}
	if m.ended == nil || !m.reports() {
		return d
	}
	u, c := m.used()
	d.USD, d.Input, d.Output = c.USD, u.Input, u.Output
	if m.Parent != "" {
		d.Usage, d.Priced = &u, c.Priced
	}
	return d
}

// ending is why the run ends whose command has.
func (m *Machine) ending() event.RunTerminatedBy {
	d := event.RunTerminatedBy{Reason: event.ReasonFinalAnswer, Output: m.output()}
	if d.Error = m.failure(); d.Error == nil {
		return d
	}
	switch m.ended.ErrorType {
	case event.ErrorDenied:
		d.Reason = event.ReasonPolicyDenied
	case event.ErrorRejected, event.ErrorExpired:
		d.Reason = event.ReasonRejected
	case event.ErrorUnavailable:
		d.Reason = event.ReasonToolUnavailable
	default:
		d.Reason = event.ReasonStepFailed
	}
	return d
}

// failure is why the process did not do its work, with the end of what it said about
// that.
func (m *Machine) failure() *event.Failure {
	f := m.ended.Failure()
	if m.ended.ErrorType == event.ErrorCancelled {
		// It was interrupted, and its effect class does not let it run again.
		return &event.Failure{
			Class: string(event.ErrorInDoubt), Message: "it was stopped before it had finished, so it is not known what it did; it was not repeated",
		}
	}
	if f == nil && m.ended.Report != nil && m.ended.Report.Failed != "" {
		return &event.Failure{Class: "process", Message: m.ended.Report.Failed}
	}
	if said := strings.TrimSpace(m.ended.Stderr); f != nil && said != "" {
		f.Message += ": " + said
	}
	return f
}

// result is what the process wrote as its result where that is JSON, nil where it is
// not.
func (m *Machine) result() json.RawMessage {
	if m.ended == nil || m.ended.Report == nil || !json.Valid([]byte(m.ended.Report.Result)) {
		return nil
	}
	return json.RawMessage(strings.TrimSpace(m.ended.Report.Result))
}

// output is what the process said: the text of its result, else the last word of its
// stream of events, else all that it printed.
func (m *Machine) output() string {
	r := m.ended.Report
	if r == nil {
		return m.ended.Output
	}
	var text string
	var object struct {
		Text string `json:"text"`
	}
	raw := m.result()
	switch {
	case raw == nil && strings.TrimSpace(r.Result) != "":
		return r.Result
	case raw != nil && json.Unmarshal(raw, &text) == nil && text != "":
		return text
	case raw != nil && json.Unmarshal(raw, &object) == nil && object.Text != "":
		return object.Text
	case r.Form != "":
		return r.Text
	}
	return m.ended.Output
}

func (m *Machine) outcome() event.Outcome {
	o := m.Conclude()
	o.Result = m.result()
	return o
}
