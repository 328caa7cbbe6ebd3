package pawl

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pawlrun/pawl/eval"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// Extract is what evaluators see of a run: text, finalToolResult, cycles and
// terminatedBy. The evaluators are in package eval.
type Extract = eval.Extract

// ExtractOf reads the extract of any ended run in a journal. Of a run that has not
// ended the error is an [eval.ErrNotEnded].
func ExtractOf(ctx context.Context, store journal.Store, run string) (Extract, error) {
	const size = 500
	return eval.Of(func(yield func(*event.Event, error) bool) {
		for after, n := int64(0), size; n == size; {
			records, err := store.Records(ctx, run, after, size)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range records {
				e, err := event.Decode(r.Body)
				if !yield(e, err) || err != nil {
					return
				}
				after = r.Seq
			}
			n = len(records)
		}
	})
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
