package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/journal"
)

// exportCase writes a suite with the run as its case. The case has the run's input and
// file, so that --live runs it again, and an evaluator that expects the same answer.
func (s *session) exportCase(ctx context.Context, r journal.Run, path string) error {
	if r.State != journal.Ended {
		return usagef("run %s has not ended (%s), so there is nothing to judge; %s", r.ID, stateText(r), s.resumeCommand(ctx, r))
	}
	started, err := s.startOf(ctx, r)
	if err != nil {
		return err
	}
	var o event.Outcome
	if err := json.Unmarshal(r.Outcome, &o); err != nil {
		return fmt.Errorf("export run %s: read its outcome: %w", r.ID, err)
	}
	input, model := given(started)
	c := suite.Case{Name: cmp.Or(r.Name, "run") + " " + r.ID, Input: input, Recorded: r.ID}
	if isFile(started.Source) {
		c.Agent, c.Model = started.Source, model
	}
	if text := firstLine(o.FinalOutput, 200); text != "" {
		c.Evaluators = []suite.Evaluator{{Contains: text}}
	} else {
		c.Evaluators = []suite.Evaluator{{CEL: fmt.Sprintf("terminatedBy == %q", o.Reason)}}
	}
	text, err := yaml.Marshal(suite.Suite{APIVersion: "pawl/v1", Kind: suite.Kind, Name: cmp.Or(r.Name, "runs"), Cases: []suite.Case{c}})
	if err != nil {
		return fmt.Errorf("export run %s: %w", r.ID, err)
	}
	if path == "" {
		_, err := s.app.out.Write(text)
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usagef("--out: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return s.app.printf("%s: a suite with run %s as its case; judge it with: %s eval %s\n", path, r.ID, s.app.invocation(), shellWord(path))
}
