// Package process implements the machine of a run that another agent carries out as a
// separate process. Its only action is to run that command.
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

// Version names the machine's rules. A run's first event records it.
const Version = "process/1"

// Kind is the kind of the machine's runs.
const Kind = "Process"

// Permission is the rule by which a file permits the command that it names.
const Permission = "runner"

// mostOutput limits the output in the journal's event. The whole output is stored
// separately.
const mostOutput = 30_000

// Config is everything that such a run depends on. run.started contains all of it.
type Config struct {
	// Name is the name of the run.
	Name string `json:"name,omitempty"`
	// Command is the program with its arguments, without the task.
	Command []string `json:"command"`
	// Permission is as in [machine.RunCommand].
	Permission string `json:"permission,omitempty"`
	// Prompt is the way in which the program gets its task. Environment names variables
	// that the program gets in addition to those of other commands. Events reports that
	// the output may be a stream of events. The environment of the run's effects uses
	// these fields.
	Prompt      string   `json:"prompt,omitempty"`
	Environment []string `json:"environment,omitempty"`
	Events      bool     `json:"events,omitempty"`
	// Idle limits the time without output, and MaxTime the total time in addition to
	// Limits; 0 means no limit.
	Idle    time.Duration `json:"idle,omitempty"`
	MaxTime time.Duration `json:"maxTime,omitempty"`
	// Effect is the effect class of the command.
	Effect event.Effect `json:"effect,omitempty"`
	// Limits apply to the run, and Policy contains the rules that judge the command.
	Limits budget.Limits `json:"limits"`
	Policy policy.Rules  `json:"policy"`
}

// Start returns the first event of a run, with its configuration and its task.
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
	// tries counts the attempts that ended at a provider's limit.
	tries int
	// ended is the end of the latest attempt, nil before it.
	ended *event.CommandFinished
	// refused is the refusal by a run above, nil for none.
	refused *event.BudgetRefused
	// paused reports that nothing may begin until the run has parked and resumed.
	paused bool
}

var _ machine.Funder = (*Machine)(nil)

// New returns a machine whose first event must be run.started.
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

// resumed folds a resume. A command that ended at a provider's limit runs again.
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

// command returns the id of the latest attempt at the command and of its reservation.
func (m *Machine) command() string { return fmt.Sprintf("process.%d", m.tries+1) }

// reports reports whether the program reported its usage.
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

// Next returns the actions that are due.
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

// reserve returns a reservation of zero, because the process's usage is unknown in
// advance. The usage that the process reports is committed under the reservation's id,
// here and in the runs above.
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

// ending returns the end of a run whose command has ended.
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

// failure returns the failure of the process, with the end of its error output.
func (m *Machine) failure() *event.Failure {
	f := m.ended.Failure()
	if m.ended.ErrorType == event.ErrorCancelled {
		// It was interrupted, and its effect class does not allow another run.
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

// result returns the result that the process wrote, or nil if that is not JSON.
func (m *Machine) result() json.RawMessage {
	if m.ended == nil || m.ended.Report == nil || !json.Valid([]byte(m.ended.Report.Result)) {
		return nil
	}
	return json.RawMessage(strings.TrimSpace(m.ended.Report.Result))
}

// output returns the text of the process's result, or else the last text in its stream
// of events, or else everything that it printed.
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
