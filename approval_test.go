package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// gatedAgent asks about its one call, and notes what it was called with.
func gatedAgent(ran *[]string) pawl.Agent {
	type args struct {
		To string `json:"to"`
	}
	send := pawl.Tool("send", "Send a letter.", func(_ context.Context, a args) (string, error) {
		*ran = append(*ran, a.To)
		return "sent", nil
	})
	return pawl.Agent{
		Tools: []tool.Tool{send}, Approvals: pawl.Approvals{Tools: []string{"send"}},
		Model: says(scripted.Turn{ToolCalls: calls("send", `{"to":"a"}`)}, scripted.Turn{Text: "done"}),
	}
}

// decisionsOf are the decisions in a run's journal.
func decisionsOf(t *testing.T, r *pawl.Run) []event.ToolApprovalResolved {
	t.Helper()
	var out []event.ToolApprovalResolved
	for e, err := range r.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Data.(event.ToolApprovalResolved); ok {
			out = append(out, d)
		}
	}
	return out
}

// A run that goes on without its model would fail for good, and a person's decision
// would be lost with it.
func TestARunIsNotTakenUpByAnAgentThatLacksItsModel(t *testing.T) {
	var ran []string
	a := gatedAgent(&ran)
	run := start(t, a, "go")
	parked := final(t, run)
	if err := run.Approve(t.Context(), parked.Pending[0].CallID, ""); err != nil {
		t.Fatal(err)
	}
	other := a
	other.Model.Name = "scripted/other"
	_, err := other.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
	if !errors.Is(err, llm.ErrUnknownModel) || !strings.Contains(err.Error(), a.Model.Name) {
		t.Errorf("the error is %v", err)
	}
	run, err = a.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, run); s.Text() != "done" || len(ran) != 1 {
		t.Errorf("%s after %d calls", s.Status, len(ran))
	}
}

// What an agent lacks of the chain keeps a run from going on only where the run
// stands on it.
func TestARunIsTakenUpByAnAgentThatHasTheModelItStandsOn(t *testing.T) {
	target := func(name string, turns ...scripted.Turn) pawl.Target {
		return pawl.Target{Name: name, Client: scripted.New(name, turns...)}
	}
	busy := scripted.Turn{Error: &scripted.Failure{Class: llm.ClassOverloaded, Message: "busy"}}
	asks, done := scripted.Turn{ToolCalls: calls("send", `{"to":"a"}`)}, scripted.Turn{Text: "done"}
	first, fallback := target("test/first", asks, done), target("test/fallback", asks, done)
	failing, takingOver := target("test/first", busy), target("test/fallback", busy, asks, done)
	for name, c := range map[string]struct {
		first, fallback, resumed pawl.Target
		lacks                    string
	}{
		"without a fallback that was not needed": {first, fallback, first, ""},
		"without the model that failed":          {failing, takingOver, takingOver, ""},
		"without the fallback that took over":    {failing, takingOver, first, "test/fallback"},
		"without the model that did not fail":    {first, fallback, fallback, "test/first"},
		"without either":                         {first, fallback, target("test/other"), "test/first"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []string
				a := gatedAgent(&ran)
				a.Model, a.Fallbacks = c.first, []pawl.Target{c.fallback}
				run := start(t, a, "go")
				parked := final(t, run)
				if len(parked.Pending) != 1 {
					t.Fatalf("%s: %+v", parked.Status, parked.Outcome)
				}
				if err := run.Approve(t.Context(), parked.Pending[0].CallID, ""); err != nil {
					t.Fatal(err)
				}
				a.Model, a.Fallbacks = c.resumed, nil
				again, err := a.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
				if c.lacks != "" {
					if !errors.Is(err, llm.ErrUnknownModel) || !strings.Contains(err.Error(), c.lacks+" is not among") {
						t.Errorf("the error is %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if s := final(t, again); s.Text() != "done" || len(ran) != 1 {
					t.Errorf("%s after %d calls", s.Status, len(ran))
				}
			})
		})
	}
}

// rows: ALF-66, HAR-66
func TestAskDecidesAboutACall(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*pawl.Agent)
		ask    func(context.Context, pawl.Approval) (pawl.Decision, error)
		ran    string
		status pawl.Status
		kind   event.ApprovalKind
		by     string
		reason string
	}{
		{"yes", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Approve: true, By: "ann", Reason: "she is expected"}, nil
		}, "a", pawl.StatusCompleted, event.ApprovalApproved, "ann", "she is expected"},
		{"no", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Reason: "not today"}, nil
		}, "", pawl.StatusCompleted, event.ApprovalRejected, "the program's Ask", "not today"},
		{"the zero value is no", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{}, nil
		}, "", pawl.StatusCompleted, event.ApprovalRejected, "the program's Ask", ""},
		{"yes, but", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Approve: true, Args: json.RawMessage(`{"to":"b"}`)}, nil
		}, "b", pawl.StatusCompleted, event.ApprovalEdited, "the program's Ask", ""},
		{"yes, but with arguments that the tool refuses", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Approve: true, Args: json.RawMessage(`{"whom":"b"}`)}, nil
		}, "", pawl.StatusCompleted, event.ApprovalEdited, "the program's Ask", ""},
		{"arguments without a yes are no", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Args: json.RawMessage(`{"to":"b"}`)}, nil
		}, "", pawl.StatusCompleted, event.ApprovalRejected, "the program's Ask", ""},
		{"a panic is no", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			panic("no window")
		}, "", pawl.StatusCompleted, event.ApprovalRejected, "the program's Ask", "the program's Ask panicked: no window"},
		{"an error parks", nil, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Approve: true}, errors.New("not now")
		}, "", pawl.StatusParked, "", "", ""},
		{"an error is no where only Ask decides", func(a *pawl.Agent) { a.Approvals.Mode = pawl.ApproveCallback }, func(context.Context, pawl.Approval) (pawl.Decision, error) {
			return pawl.Decision{Approve: true}, errors.New("not now")
		}, "", pawl.StatusCompleted, event.ApprovalRejected, "nobody", "not now"},
		{"nobody is no where only Ask decides", func(a *pawl.Agent) { a.Approvals.Mode = pawl.ApproveCallback }, nil,
			"", pawl.StatusCompleted, event.ApprovalRejected, "nobody", "nobody can be asked here"},
		{"its time is bounded", func(a *pawl.Agent) { a.Approvals.Within = time.Minute }, func(ctx context.Context, p pawl.Approval) (pawl.Decision, error) {
			if at, ok := ctx.Deadline(); !ok || !at.Equal(*p.ExpiresAt) {
				return pawl.Decision{Approve: true}, nil
			}
			<-ctx.Done()
			return pawl.Decision{Approve: true}, nil
		}, "", pawl.StatusCompleted, event.ApprovalExpired, "", "nobody decided in time"},
		{"or ends the run", func(a *pawl.Agent) { a.Approvals.Within, a.Approvals.OnTimeout = time.Minute, pawl.TimeoutStop }, func(ctx context.Context, _ pawl.Approval) (pawl.Decision, error) {
			<-ctx.Done()
			return pawl.Decision{}, ctx.Err()
		}, "", pawl.StatusFailed, event.ApprovalExpired, "", "nobody decided in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []string
				a := gatedAgent(&ran)
				a.Approvals.Ask = c.ask
				if c.change != nil {
					c.change(&a)
				}
				run, err := a.Start(t.Context(), "go", pawl.Options{})
				if err != nil {
					t.Fatal(err)
				}
				final, err := run.Wait()
				if err != nil || final.Status != c.status || strings.Join(ran, " ") != c.ran {
					t.Errorf("%s, ran with %q, want %s and %q (%v)", final.Status, ran, c.status, c.ran, err)
				}
				decisions := decisionsOf(t, run)
				if c.kind == "" {
					if len(decisions) != 0 {
						t.Errorf("decided %+v", decisions)
					}
					return
				}
				if d := decisions[0]; d.Kind != c.kind || d.Approver != c.by || d.Reason != c.reason || d.At.IsZero() {
					t.Errorf("decided %+v", d)
				}
			})
		})
	}
}

// A tool with an irreversible effect asks, even if no rule names it, and carries a key
// and the record of its approval.
//
// rows: HAR-61
func TestAHighRiskCallCarriesAKeyAndTheRecordOfItsApproval(t *testing.T) {
	for _, risk := range []event.Risk{event.RiskFinancial, event.RiskSend, event.RiskDelete, event.RiskPermission} {
		t.Run(string(risk), func(t *testing.T) {
			var ran []string
			a := gatedAgent(&ran)
			a.Approvals.Tools, a.Tools[0].Risk = nil, risk
			run, err := a.Start(t.Context(), "go", pawl.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if parked, err := run.Wait(); err != nil || parked.Status != pawl.StatusParked || parked.Pending[0].Risk != risk || len(ran) != 0 {
				t.Fatalf("%+v, %v, ran with %q", parked, err, ran)
			}
			if err := run.Approve(t.Context(), run.ID()+"-1-1", "yes"); err != nil {
				t.Fatal(err)
			}
			if err := run.Reject(t.Context(), run.ID()+"-1-1", "no"); !errors.Is(err, pawl.ErrNotPending) || !strings.Contains(err.Error(), "already resolved: approved by the program") {
				t.Errorf("the second answer: %v", err)
			}
			run, err = a.Resume(t.Context(), run.ID(), pawl.Options{Journal: run.Journal()})
			if err != nil {
				t.Fatal(err)
			}
			if final, err := run.Wait(); err != nil || final.Status != pawl.StatusCompleted || len(ran) != 1 {
				t.Fatalf("%+v, %v", final, err)
			}
			var approval event.ToolApprovalResolved
			var asked event.ToolPendingApproval
			for e, err := range run.Events() {
				if err != nil {
					t.Fatal(err)
				}
				switch d := e.Data.(type) {
				case event.ToolPendingApproval:
					asked = d
				case event.ToolApprovalResolved:
					approval = d
				case event.ToolStarted:
					if d.Key == "" || approval.Kind != event.ApprovalApproved || approval.Digest != asked.Digest || asked.Digest == "" {
						t.Errorf("it starts with the key %q after %+v", d.Key, approval)
					}
				}
			}
		})
	}
}

func TestAnApprovalSettingThatIsNone(t *testing.T) {
	a := gatedAgent(new([]string))
	a.Approvals.Mode, a.Approvals.OnTimeout, a.Approvals.Within = "maybe", "explode", -1
	err := a.Validate()
	for _, field := range []string{"Approvals.Mode", "Approvals.OnTimeout", "Approvals.Within"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}
