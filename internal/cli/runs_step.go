package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// shownStep is one step of a workflow with its output.
type shownStep struct {
	Step    string    `json:"step"`
	State   stepState `json:"state"`
	Attempt int       `json:"attempt,omitempty"`
	// Run is the run of the step, or Argv its command.
	Run      string   `json:"run,omitempty"`
	Argv     []string `json:"argv,omitempty"`
	ExitCode *int     `json:"exitCode,omitempty"`
	// Reason is why it failed or was skipped.
	Reason string          `json:"reason,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Output is the whole output. Truncated reports that the journal has only a
	// part.
	Output    string `json:"output"`
	Truncated bool   `json:"truncated,omitempty"`

	blob string
}

// step reads a step of a run by id.
func (s *session) step(ctx context.Context, r journal.Run, id string) (shownStep, error) {
	shown := shownStep{Step: id}
	var known []string
	for read, err := range drive.Events(ctx, s.store, r.ID, 0) {
		if err != nil {
			return shown, err
		}
		data := read.Event.Data
		if of, ok := data.(interface{ OfStep() string }); ok && of.OfStep() != "" && !slices.Contains(known, of.OfStep()) && len(known) < 1000 {
			known = append(known, of.OfStep())
		}
		shown.add(data)
	}
	switch {
	case shown.State != "":
	case len(known) == 0:
		return shown, usagef("run %s has no steps; 'pawl runs show %s' shows it", r.ID, r.ID)
	default:
		slices.Sort(known)
		return shown, usagef("run %s has no step %q that has begun; there are %s", r.ID, id, strings.Join(known[:min(len(known), 20)], ", "))
	}
	if shown.blob != "" {
		whole, err := drive.NewBlobs(s.store).Load(ctx, shown.blob)
		if err != nil {
			return shown, fmt.Errorf("the output of step %s: %w", id, err)
		}
		shown.Output = string(whole)
	}
	return shown, nil
}

// add applies an event of the run.
func (s *shownStep) add(data event.Data) {
	switch d := data.(type) {
	case event.ChildStarted:
		if d.Step == s.Step && !strings.Contains(d.ID, "/") { // not its judge
			s.State, s.Run, s.Attempt = view.StepRunning, d.Child, max(s.Attempt, 1)
		}
	case event.StepStarted:
		if d.Step == s.Step {
			*s = shownStep{Step: s.Step, State: view.StepRunning, Attempt: d.Attempt, Run: cmp.Or(d.Child, s.Run)}
		}
	case event.CommandStarted:
		if d.Step == s.Step && view.DoesStep(d.ID) {
			s.State, s.Argv = view.StepRunning, d.Argv
		}
	case event.CommandFinished:
		if d.Step == s.Step && view.DoesStep(d.ID) {
			s.Output, s.blob, s.ExitCode, s.Truncated = d.Output, d.Blob, d.ExitCode, d.Truncated && d.Blob == ""
		}
	case event.StepFinished:
		if d.Step != s.Step {
			return
		}
		s.State, s.Result = stepState(d.Status), d.Result
		if s.Argv == nil {
			s.Output = d.Content
		}
		if d.Error != nil {
			s.Reason = d.Error.Message
		}
	case event.StepSkipped:
		if d.Step == s.Step {
			s.State, s.Reason = view.StepSkipped, d.Reason
		}
	}
}

// printStep prints a step for a person.
func (a *app) printStep(s shownStep) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s%s\n", name, harmless(value))
		}
	}
	state := string(s.State)
	if s.Attempt > 1 {
		state += ", attempt " + strconv.Itoa(s.Attempt)
	}
	row("step", s.Step)
	row("state", state)
	row("run", s.Run)
	row("command", strings.Join(s.Argv, " "))
	if s.ExitCode != nil {
		row("exit code", strconv.Itoa(*s.ExitCode))
	}
	row("because", s.Reason)
	if string(s.Result) != strings.TrimSpace(s.Output) {
		row("result", string(s.Result))
	}
	if s.Truncated {
		row("output", "the beginning and the end; the program printed more than is kept")
	}
	output := s.Output
	if screenOf(a.out, os.Getenv).terminal {
		output = harmless(output)
	}
	if output = strings.TrimRight(output, "\r\n"); output != "" {
		b.WriteString("\n" + output + "\n")
	}
	return a.printf("%s", b.String())
}
