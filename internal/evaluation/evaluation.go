// Package evaluation runs the cases of a suite and judges what they did. Each run of a
// case, and each question to a judge, is a run of the journal whose id follows from the
// evaluation and the case. A second call after a crash finds them, so that it only does
// what is left. The journal has a note about each evaluation that is not finished.
package evaluation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/files/expr"
	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/suite"
	"github.com/pawlrun/pawl/journal"
)

// Evaluation is one pass over a suite.
type Evaluation struct {
	Suite  *suite.Suite
	Engine *engine.Engine
	Store  journal.Store
	// Options are those of every run; the workspace is set for each.
	Options launch.Options
	// Budget is the Admission of the engine.
	Budget *Budget
	// Dir contains the workspaces of the runs.
	Dir string
	// Find returns the run that a case names as recorded.
	Find func(ctx context.Context, name string) (journal.Run, error)
	// Principal is the person or program that starts the runs.
	Principal event.Principal
	// Done is called with each trial that is decided, one at a time; nil for none.
	Done func(of *suite.Case, t Trial)
	// Anew begins another evaluation even if the last one of the suite is unfinished.
	Anew bool

	expressions *expr.Evaluator
	token       string
}

// kept is how long an unfinished evaluation is remembered, and the workspaces of runs that
// did not pass are left.
const kept = 30 * 24 * time.Hour

// note is the body of the journal's note about an unfinished evaluation.
type note struct {
	Evaluation string `json:"evaluation"`
}

// Run decides the remaining trials. If ctx ends with [engine.ErrInterrupted], or
// the budget is used up, the report is incomplete, and the next call continues. The
// error is of the suite, of a run that cannot start, or of the journal.
func (e *Evaluation) Run(ctx context.Context, targets Targets) (*Report, error) {
	e.expressions = expr.New()
	e.prune(time.Now().Add(-kept))
	id, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	trials := e.trials(targets)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := e.account(ctx, trials, func() { cancel(engine.ErrInterrupted) }); err != nil {
		return nil, err
	}
	began := time.Now()
	decided, err := e.all(ctx, trials, cancel)
	if err != nil {
		return nil, err
	}
	report := e.report(trials, decided)
	report.Seconds = time.Since(began).Seconds()
	if report.Stopped == "" {
		_ = os.Remove(e.workspace("judge"))
		_ = os.Remove(e.workspace("")) // it stays with the workspaces of runs that did not pass
		if err := e.Store.Amend(context.WithoutCancel(ctx), id, nil); err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
	}
	return report, nil
}

// prune removes the workspaces of evaluations without a new run since a time.
func (e *Evaluation) prune(before time.Time) {
	all, _ := os.ReadDir(e.Dir)
	for _, entry := range all {
		if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.RemoveAll(filepath.Join(e.Dir, entry.Name()))
		}
	}
}

// begin finds the unfinished evaluation of the suite, or begins one. It returns the
// number of the note about it.
func (e *Evaluation) begin(ctx context.Context) (int64, error) {
	path, err := filepath.Abs(e.Suite.File)
	if err != nil {
		return 0, fmt.Errorf("evaluation: %w", err)
	}
	mine := note{strings.ToLower(rand.Text()[:16])}
	body, err := json.Marshal(mine)
	if err != nil {
		return 0, fmt.Errorf("evaluation: %w", err)
	}
	now := time.Now()
	n, fresh, err := e.Store.Note(ctx, journal.Note{Key: "eval " + path, At: now, Expires: now.Add(kept), Body: body})
	if err == nil && !fresh {
		if e.Anew || json.Unmarshal(n.Body, &mine) != nil {
			err = e.Store.Amend(ctx, n.ID, body)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("evaluation: note that it began: %w", err)
	}
	e.token = mine.Evaluation
	return n.ID, nil
}

// account tells the budget what the runs of an earlier call cost.
func (e *Evaluation) account(ctx context.Context, trials []trial, stop func()) error {
	var usd float64
	add := func(id string) error {
		r, err := e.Store.Run(ctx, id)
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		cost, err2 := e.spent(ctx, r)
		usd += cost.USD
		return errors.Join(err, err2)
	}
	for _, t := range trials {
		ids := t.judges
		if t.c.Recorded == "" {
			ids = append([]string{t.run}, ids...)
		}
		for _, id := range ids {
			if id == "" {
				continue
			}
			if err := add(id); err != nil {
				return fmt.Errorf("evaluation: %w", err)
			}
		}
	}
	e.Budget.begin(usd, stop)
	return nil
}

// all decides the trials, some at once. A trial that is nil was not decided.
func (e *Evaluation) all(ctx context.Context, trials []trial, stop context.CancelCauseFunc) ([]*Trial, error) {
	decided := make([]*Trial, len(trials))
	var (
		work   sync.WaitGroup
		mu     sync.Mutex
		failed error
		slots  = make(chan struct{}, e.Suite.Parallel())
	)
	for i := range trials {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			defer func() { <-slots }()
			t, err := e.try(ctx, &trials[i])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && failed == nil && ctx.Err() == nil:
				failed = err
				stop(engine.ErrInterrupted)
			case err == nil && t != nil:
				decided[i] = t
				if e.Done != nil {
					e.Done(trials[i].c, *t)
				}
			}
		})
	}
	work.Wait()
	return decided, failed
}
