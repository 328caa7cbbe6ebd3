package place

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// scripted is a driver that leaves a run in the next of its rows.
type scripted struct {
	mu    sync.Mutex
	rows  []left
	calls []request
}

type left struct {
	row  journal.Run
	wake time.Duration
	err  error
}

func (s *scripted) Drive(_ context.Context, run string, resume bool) (journal.Run, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.rows[len(s.calls)]
	s.calls = append(s.calls, request{run, resume})
	var wake time.Time
	if l.wake > 0 {
		wake = time.Now().Add(l.wake)
	}
	return l.row, wake, l.err
}

func (s *scripted) Begin(context.Context, string, event.RunStarted) error { return nil }

func (s *scripted) resumes() (all []bool) {
	for _, c := range s.calls {
		all = append(all, c.Resume)
	}
	return all
}

func is(state journal.State, detail string) journal.Run {
	return journal.Run{Progress: journal.Progress{State: state, Detail: detail}}
}

// anywhere is a store whose runs have no place.
type anywhere struct{ journal.Store }

func (anywhere) Records(_ context.Context, run string, _ int64, _ int) ([]journal.Record, error) {
	body, err := event.Encode(&event.Event{Seq: 1, Run: run, Data: event.RunStarted{}})
	return []journal.Record{{Run: run, Seq: 1, Type: string(event.TypeRunStarted), Body: body}}, err
}

// play runs the workflow with a driver; do acts on it while it runs.
func play(t *testing.T, s *scripted, do func(*testsuite.TestWorkflowEnvironment)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	// A busy machine may stop this process for seconds.
	env.SetTestTimeout(2 * time.Minute)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 2 * time.Minute})
	a := &activities{Options: Options{Driver: s, Store: anywhere{}, Log: slog.New(slog.DiscardHandler)}, parking: t.Context()}
	env.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Workflow})
	env.RegisterActivityWithOptions(a.drive, activity.RegisterOptions{Name: drive})
	do(env)
	env.ExecuteWorkflow(Workflow, input{})
	return env
}

func TestRunIsDrivenAgainAtEachSignalUntilItEnds(t *testing.T) {
	parked := left{row: is(journal.Parked, "approval")}
	s := &scripted{rows: []left{parked, parked, {row: is(journal.Ended, "")}}}
	env := play(t, s, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(wake, false) }, time.Hour)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(wake, true) }, 48*time.Hour)
	})
	if err := env.GetWorkflowError(); err != nil || !env.IsWorkflowCompleted() {
		t.Fatalf("the workflow has not completed: %v", err)
	}
	if want := []bool{false, false, true}; !slices.Equal(s.resumes(), want) {
		t.Errorf("drives resumed %v, want %v", s.resumes(), want)
	}
}

func TestLongWaitEndsByItself(t *testing.T) {
	s := &scripted{rows: []left{
		{row: is(journal.Parked, "interrupted"), wake: 3 * time.Hour},
		{row: is(journal.Parked, "interrupted"), wake: 2 * time.Hour},
		{row: is(journal.Ended, "")},
	}}
	env := play(t, s, func(*testsuite.TestWorkflowEnvironment) {})
	if err := env.GetWorkflowError(); err != nil || !env.IsWorkflowCompleted() {
		t.Fatalf("the workflow has not completed: %v", err)
	}
	if want := []bool{false, true, true}; !slices.Equal(s.resumes(), want) {
		t.Errorf("drives resumed %v, want %v", s.resumes(), want)
	}
}

func TestRunThatAWorkerLeftIsDrivenAgain(t *testing.T) {
	s := &scripted{rows: []left{
		{row: is(journal.Parked, "interrupted")}, // the worker was stopped
		{err: &journal.HeldError{}},              // the lease of a killed worker
		{row: is(journal.Running, "")},           // the lease was lost
		{row: is(journal.Ended, "")},
	}}
	env := play(t, s, func(*testsuite.TestWorkflowEnvironment) {})
	if err := env.GetWorkflowError(); err != nil || len(s.calls) != 4 {
		t.Fatalf("%d drives, want 4: %v", len(s.calls), err)
	}
}

func TestDeletedRunEndsItsWorkflow(t *testing.T) {
	s := &scripted{rows: []left{{err: journal.ErrNotFound}}}
	env := play(t, s, func(*testsuite.TestWorkflowEnvironment) {})
	if err := env.GetWorkflowError(); err != nil || len(s.calls) != 1 {
		t.Fatalf("%d drives, want 1: %v", len(s.calls), err)
	}
}

func TestErrorOfARunIsNotGivenToTemporal(t *testing.T) {
	a := &activities{Options: Options{Log: slog.New(slog.DiscardHandler)}}
	_, err := a.outcome(t.Context(), "r", journal.Run{}, time.Time{}, errors.New("the file says: a secret"))
	if err == nil || err.Error() != errRefused.Error() {
		t.Errorf("the error is %v, want %v", err, errRefused)
	}
}

func TestHistoryThatIsLongContinuesAsNew(t *testing.T) {
	s := &scripted{rows: []left{{row: is(journal.Parked, "approval")}}}
	env := play(t, s, func(env *testsuite.TestWorkflowEnvironment) {
		env.SetContinueAsNewSuggested(true)
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(wake, true) }, time.Minute)
	})
	if err := env.GetWorkflowError(); err == nil || len(s.calls) != 1 {
		t.Errorf("%d drives and the error %v, want 1 and a continuation", len(s.calls), err)
	}
}

// A run of another host is left to the queue of that host, in which the next drive is
// scheduled at once; a later drive is scheduled there too.
func TestRunMovesToTheQueueOfItsHost(t *testing.T) {
	var queues []string
	rows := []journal.Run{is(journal.Waiting, journal.WaitNoWorker+"the host one"), is(journal.Parked, "approval"), is(journal.Ended, "")}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Workflow})
	env.RegisterActivityWithOptions(func(ctx context.Context, r request) (outcome, error) {
		queues = append(queues, activity.GetInfo(ctx).TaskQueue)
		row := rows[len(queues)-1]
		return outcome{State: string(row.State), Queue: queueOf("pawl", event.Place{Host: "one"}), Elsewhere: row.WaitsForWorker()}, nil
	}, activity.RegisterOptions{Name: drive})
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(wake, true) }, time.Hour)
	env.ExecuteWorkflow(Workflow, input{})
	if err := env.GetWorkflowError(); err != nil || len(queues) != 3 || queues[0] == queues[1] || queues[1] != "pawl/host/one" || queues[2] != queues[1] {
		t.Errorf("driven in the queues %q, %v", queues, err)
	}
}

func TestQueueOfAPlace(t *testing.T) {
	for want, p := range map[string]event.Place{
		"":               {},
		"pawl/label/gpu": {Label: "gpu"},
		"pawl/host/one":  {Host: "one", Repo: "r"},
		"pawl/host/gpu":  {Host: "gpu"},
	} {
		if got := queueOf("pawl", p); got != want {
			t.Errorf("%+v has the queue %q, want %q", p, got, want)
		}
	}
}
