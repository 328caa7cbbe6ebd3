package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

const token = "tok-1234567890-xyz"

// inbox records the commands that were in a store's inbox.
type inbox struct {
	journal.Store
	sent []journal.Command
}

func (s *inbox) Send(ctx context.Context, c journal.Command) (int64, error) {
	s.sent = append(s.sent, c)
	return s.Store.Send(ctx, c)
}

// family returns a controller of a process other than the program's, a run of the
// program, and its child with a secret and a call to decide.
func family(t *testing.T, mode pawl.ApproveMode) (store *inbox, controller *control.Controller, run *pawl.Run, child, call string) {
	t.Helper()
	target := func(turns ...scripted.Turn) pawl.Target {
		return pawl.Target{Name: "test/m", Client: scripted.New("test", turns...)}
	}
	payer := pawl.Agent{
		Model:     target(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}}, scripted.Turn{Text: "paid"}),
		Approvals: pawl.Approvals{Tools: []string{"pay"}, Mode: mode},
		Secrets:   []pawl.Secret{{Name: "token", Value: token}},
	}
	payer.Tools = append(payer.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	owner := pawl.Agent{
		Model:  target(scripted.Turn{ToolCalls: []scripted.Call{{Name: "payer", Arguments: []byte(`{"task":"pay"}`)}}}, scripted.Turn{Text: "done"}),
		Agents: []pawl.AgentTool{{Name: "payer", Description: "Pays.", Agent: payer}},
	}
	shared := memory.New(nil)
	run, err := owner.Start(t.Context(), "Pay.", pawl.Options{Journal: shared})
	if err != nil {
		t.Fatal(err)
	}
	store = &inbox{Store: shared}
	e := engine.New(store, versions.Make, engine.Options{})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	watch := shared.Watch(t.Context())
	for {
		rows, err := shared.Runs(t.Context(), journal.Filter{Parent: run.ID()})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 1 {
			if s, err := pawl.Inspect(t.Context(), shared, rows[0].ID); err != nil {
				t.Fatal(err)
			} else if len(s.Pending) == 1 {
				return store, control.New(store, e), run, rows[0].ID, s.Pending[0].CallID
			}
		}
		<-watch
	}
}

func stored(t *testing.T, store journal.Store, runs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, run := range runs {
		records, err := store.Records(t.Context(), run, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			b.Write(r.Body)
		}
	}
	return b.String()
}

func TestADecisionForAProgramsChildIsSealedToItsDriver(t *testing.T) {
	store, controller, run, child, call := family(t, pawl.ApproveWait)
	row, err := store.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	got, err := controller.Send(t.Context(), row, byAnn(journal.Command{Kind: journal.Approve, CallID: call, By: "ann", Text: "use " + token}))
	if err != nil || !got.Live || !got.Taken || got.Run != run.ID() {
		t.Fatalf("%+v, %v", got, err)
	}
	if s, err := run.Wait(); err != nil || s.Text() != "done" {
		t.Fatalf("%+v, %v", s, err)
	}
	if text := stored(t, store, run.ID(), child); strings.Contains(text, token) || !strings.Contains(text, "use ${secret:token}") {
		t.Errorf("the journals:\n%s", text)
	}
	if len(store.sent) != 1 || store.sent[0].Run != child || store.sent[0].Sealed == nil || store.sent[0].Text != "" {
		t.Errorf("there rested %+v", store.sent)
	}
	err = controller.Overtaken(t.Context(), journal.Command{Run: run.ID(), Kind: journal.Reject, CallID: call, By: "bob"}, time.Now())
	if d, ok := errors.AsType[*engine.DecidedError](err); !ok || d.Decision.Resolution().Kind != event.ApprovalApproved {
		t.Errorf("whoever comes second is told %v", err)
	}
}

func TestAProgramsParkedChildIsToldNothingThatMayHoldASecret(t *testing.T) {
	store, controller, run, child, call := family(t, pawl.ApprovePark)
	if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	row, err := store.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	before := stored(t, store, run.ID(), child)
	for name, c := range map[string]journal.Command{
		"a reason":  {Kind: journal.Reject, CallID: call, By: "ann", Text: "not with " + token},
		"arguments": {Kind: journal.Approve, CallID: call, By: "ann", Args: []byte(`{"to":"` + token + `"}`)},
	} {
		_, err := controller.Send(t.Context(), row, byAnn(c))
		if unknown, ok := errors.AsType[*engine.SecretsError](err); !ok || unknown.Run != child || !slices.Equal(unknown.Missing, []string{"token"}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(store.sent) != 0 || stored(t, store, run.ID(), child) != before {
		t.Errorf("the child was told something: %+v", store.sent)
	}
	if got, err := controller.Send(t.Context(), row, byAnn(journal.Command{Kind: journal.Reject, CallID: call, By: "ann", Text: "no"})); err != nil || !got.Taken || got.Run != run.ID() {
		t.Errorf("a call cannot be declined: %+v, %v", got, err)
	}
}

func TestWhatWaitsInAChildWaitsInItsParent(t *testing.T) {
	store, controller, run, child, call := family(t, pawl.ApproveWait)
	for _, of := range []string{run.ID(), child} {
		pending, err := controller.Pending(t.Context(), of)
		if err != nil || len(pending) != 1 || pending[0].Run != child || pending[0].ID != call {
			t.Errorf("of %s: %+v, %v", of, pending, err)
		}
	}
	if own, err := controller.PendingIn(t.Context(), run.ID()); err != nil || len(own) > 0 {
		t.Errorf("of the parent alone: %+v, %v", own, err)
	}
	watch := store.Watch(t.Context())
	for {
		row, err := store.Run(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		if row.State == journal.Waiting && row.Detail == string(event.ParkApproval) {
			break
		}
		<-watch
	}
	row, err := store.Run(t.Context(), run.ID())
	if err != nil {
		t.Fatal(err)
	}
	c := journal.Command{Kind: journal.Approve, CallID: call, By: "ann"}
	if _, err := controller.Send(t.Context(), row, byAnn(c)); err != nil {
		t.Fatal(err)
	}
	c.Run = run.ID()
	if d, err := controller.Decided(t.Context(), c); err != nil || d == nil || d.Resolution().Approver != "ann" {
		t.Errorf("decided: %+v, %v", d, err)
	}
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
}

// damaged is a store in which one run cannot be read.
type damaged struct {
	journal.Store
	run string
}

func (s *damaged) Records(ctx context.Context, run string, after int64, limit int) ([]journal.Record, error) {
	if run == s.run {
		return nil, errors.New("the disk is damaged")
	}
	return s.Store.Records(ctx, run, after, limit)
}

func TestAChildThatCannotBeReadHidesNothingElse(t *testing.T) {
	store, _, run, child, _ := family(t, pawl.ApprovePark)
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	d := &damaged{store, child}
	e := engine.New(d, versions.Make, engine.Options{})
	defer e.Close()
	controller := control.New(d, e)
	if pending, err := controller.Pending(t.Context(), run.ID()); err != nil || len(pending) != 0 {
		t.Errorf("of its parent: %+v, %v", pending, err)
	}
	if _, err := controller.Pending(t.Context(), child); err == nil {
		t.Error("of the child itself there is no error")
	}
}
