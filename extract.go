package pawl

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/rules/eval"
	"github.com/pawlrun/pawl/journal"
)

// Extract is the part of a run that evaluators see: text, finalToolResult, cycles and
// terminatedBy. The evaluators are in package eval.
type Extract = eval.Extract

// ExtractOf reads the extract of an ended run in a journal. For a run that has not
// ended the error is an [eval.ErrNotEnded].
func ExtractOf(ctx context.Context, store journal.Store, run string) (Extract, error) {
	return eval.Of(drive.AsStored(ctx, store, run))
}

// Answer has the agent answer an evaluator's question, as an [eval.Judge]. It runs in
// memory, under the agent's limits.
func (a Agent) Answer(ctx context.Context, q eval.Question) (json.RawMessage, error) {
	a.Schema = q.Schema
	s, err := a.Run(ctx, q.Task)
	if err != nil {
		return nil, err
	}
	var answer json.RawMessage
	if err := s.Decode(&answer); err != nil {
		return nil, errors.Join(err, s.Err())
	}
	return answer, nil
}
