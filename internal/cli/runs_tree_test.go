package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm/scripted"
)

// household is a program with an agent that delegates a task to another one, whose
// every payment needs an approval.
func household() pawl.Agent {
	model := func(turns ...scripted.Turn) pawl.Target {
		return pawl.Target{Name: "test/m", Client: scripted.New("test", turns...)}
	}
	payer := pawl.Agent{
		Name:      "payer",
		Model:     model(scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte(`{}`)}}}, scripted.Turn{Text: "paid"}),
		Approvals: pawl.Approvals{Tools: []string{"pay"}},
	}
	payer.Tools = append(payer.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	return pawl.Agent{
		Name:   "owner",
		Model:  model(scripted.Turn{ToolCalls: []scripted.Call{{Name: "payer", Arguments: []byte(`{"task":"pay"}`)}}}, scripted.Turn{Text: "done"}),
		Agents: []pawl.AgentTool{{Name: "payer", Description: "Pays.", Agent: payer}},
	}
}

// journal opens the project's journal.
func (p project) journal() journal.Store {
	p.t.Helper()
	path := filepath.Join(p.dir, ".pawl", "journal.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	store, err := sqlite.Open(p.t.Context(), path, sqlite.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return store
}

// parksInChild plays the program in the project's journal until it waits for a decision
// about the payment.
func (p project) parksInChild() (parent, child string) {
	p.t.Helper()
	store := p.journal()
	defer store.Close()
	run, err := household().Start(p.t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		p.t.Fatal(err)
	}
	p.parks(run)
	return run.ID(), p.childOf(store, run.ID())
}

// parks waits until a run, or one that it started, needs a decision.
func (p project) parks(run *pawl.Run) {
	p.t.Helper()
	if s, err := run.Wait(); err != nil || s.Parked == nil || s.Parked.Reason != event.ParkApproval {
		p.t.Fatalf("%+v, %v", s, err)
	}
}

func (p project) childOf(store journal.Store, run string) string {
	p.t.Helper()
	rows, err := store.Runs(p.t.Context(), journal.Filter{Parent: run})
	if err != nil || len(rows) != 1 {
		p.t.Fatal(rows, err)
	}
	return rows[0].ID
}

// The same answer twice is no answer to what a child has come to ask meanwhile.
func TestAnApprovalThatIsRepeatedDecidesNothingInAChild(t *testing.T) {
	p := newProject(t, nil)
	owner := household()
	owner.Approvals.Tools = []string{"payer"}
	store := p.journal()
	run, err := owner.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	p.parks(run)
	parent := run.ID()
	store.Close()
	p.exits(0, "runs", "approve", parent, "1-1")

	store = p.journal()
	run, err = owner.Resume(t.Context(), parent, pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	p.parks(run)
	child := p.childOf(store, parent)
	store.Close()
	for _, call := range []string{"1-1", parent + "-1-1"} {
		f := p.exits(2, "runs", "approve", parent, call)
		if !strings.Contains(f.err, "call "+parent+"-1-1 is already resolved: approved") || !strings.Contains(f.err, "; these wait: "+child+"-1-1") {
			t.Errorf("%s: %s", call, f.err)
		}
	}
	if f := p.exits(0, "runs", "show", child); !strings.Contains(f.out, "waits for "+child+"-1-1 pay") {
		t.Errorf("the child's payment: %s", f.out)
	}
}

func TestWhatWaitsInAChildIsShownAndDecidedOnEitherRun(t *testing.T) {
	for name, to := range map[string]func(parent, child string) (run, call string){
		"on the child":  func(_, child string) (string, string) { return child, "1-1" },
		"on the parent": func(parent, child string) (string, string) { return parent, child + "-1-1" },
		"on the parent, by a beginning": func(parent, child string) (string, string) {
			return parent, child[:len(child)-1] + "-1-1"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, nil)
			parent, child := p.parksInChild()
			says := func(want string, args ...string) {
				t.Helper()
				if f := p.exits(0, args...); !strings.Contains(f.out, want) {
					t.Errorf("%v does not say %q:\n%s", args, want, f.out)
				}
			}
			says("payer  (started by "+parent+")  ", "runs", "--children")
			says("\n  "+child+"  parked: approval_required  ", "runs", "tree", parent)
			says("waits for "+child+"-1-1 pay {}\n  in      run "+child+", which this one started\n", "runs", "show", parent)
			says("  decide  pawl runs approve "+child+" 1-1, or ", "runs", "show", parent)
			says(`"pending":[{"run":"`+child+`","callId":"`+child+`-1-1"`, "runs", "show", parent, "--json")
			waiting := `"waiting":[{"id":"` + child + `-1-1","kind":"call","run":"` + child + `","path":["` + parent + `","` + child + `"],"reason":"`
			says(waiting, "runs", "show", parent, "--json")
			says(waiting, "runs", "show", child, "--json")
			says(`"what":{"tool":"pay","args":{}}}]`, "runs", "show", parent, "--json")
			says("parent    "+parent+"\n", "runs", "show", child)

			f := p.exits(2, "runs", "approve", parent, "1-1")
			if !strings.Contains(f.err, "waits for no decision; these do: "+child+"-1-1") {
				t.Errorf("a bare place on the parent: %s", f.err)
			}
			run, call := to(parent, child)
			refused := "the run was started by a program that embeds Pawl, not from an agent file, so only that program can resume it"
			f = p.exits(2, "runs", "approve", run, call, "--resume")
			if want := "pawl: " + refused + "; without --resume, that program receives it when it resumes the run\n"; f.err != want {
				t.Errorf("who approves and resumes is told %q, want %q", f.err, want)
			}
			says(parent+"  parked: approval_required  ", "runs")
			says("approve "+child+"-1-1 recorded; continue in the program that started it", "runs", "approve", run, call)
			says(parent+"  parked: approval_required, answered; resume it  ", "runs")
			says(child+"  parked: approval_required, answered; resume it  ", "runs", "--children")
			if f := p.exits(2, "runs", "resume", parent); f.err != "pawl: "+refused+"\n" {
				t.Errorf("who resumes is told %q", f.err)
			}
			says("  payer  decided, resumes with this run  ", "runs", "show", parent)
			says("continue  in the program that started it", "runs", "show", child)
			says("state     parked: approval_required, answered; resume it\n", "runs", "show", parent)
			f = p.exits(2, "runs", "approve", run, call)
			if !strings.Contains(f.err, "already resolved: approved") {
				t.Errorf("a second decision is told: %s", f.err)
			}
			f = p.exits(2, "runs", "resume", child)
			if !strings.Contains(f.err, "continues when run "+parent+" is resumed") {
				t.Errorf("a child by itself is told: %s", f.err)
			}
		})
	}
}

func TestWhatWaitsInAChildIsListedAndDecidedOverHTTP(t *testing.T) {
	p := newProject(t, nil)
	parent, child := p.parksInChild()
	s := p.serve()
	defer s.stop()
	type waiting struct{ Run, CallID string }
	for _, path := range []string{"/v1/runs/" + parent + "/approvals", "/v1/runs/" + child + "/approvals", "/v1/approvals"} {
		got := asks[items[waiting]](s, http.StatusOK, http.MethodGet, path, "").Items
		if len(got) != 1 || got[0] != (waiting{child, child + "-1-1"}) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	shown := asks[struct {
		Pending []waiting
		Waiting []struct {
			ID, Kind string
			Path     []string
		}
	}](s, http.StatusOK, http.MethodGet, "/v1/runs/"+parent, "")
	if len(shown.Pending) != 1 || shown.Pending[0].Run != child || len(shown.Waiting) != 1 || shown.Waiting[0].ID != child+"-1-1" ||
		shown.Waiting[0].Kind != "call" || !slices.Equal(shown.Waiting[0].Path, []string{parent, child}) {
		t.Errorf("%+v", shown)
	}
	if got := asks[struct{ Type string }](s, http.StatusNotFound, http.MethodPost, "/v1/runs/"+parent+"/approve", `{"callId": "1-1"}`); got.Type != "urn:pawl:problem:not-pending" {
		t.Errorf("a bare place: %+v", got)
	}
	// The program is not the server's to run, and the decision stands all the same.
	got := asks[struct {
		Decision event.ToolApprovalResolved
		Problem  struct{ Type, Next string }
	}](s, http.StatusOK, http.MethodPost, "/v1/runs/"+child+"/approve", `{"callId": "`+child+`-1-1"}`)
	if got.Decision.Resolution().Kind != event.ApprovalApproved || got.Problem.Type != "urn:pawl:problem:cannot-go-on" || got.Problem.Next != "POST /v1/runs/"+parent+"/resume" {
		t.Errorf("%+v", got)
	}
}

func TestARunThatCannotBeReadIsNotCalledAPrograms(t *testing.T) {
	p := newProject(t, nil)
	parent, _ := p.parksInChild()
	p.sql(`UPDATE commits SET body = x'7b' WHERE seq = events AND rid = (SELECT rid FROM runs WHERE id = '` + parent + `')`)
	f := p.exits(exitFailed, "runs", "input", parent, "more", "--resume")
	if strings.Contains(f.err, "program") {
		t.Errorf("it says %q", f.err)
	}
	f.clean(t, "event")
}

func TestAChildThatCannotBeReadIsShownAsThat(t *testing.T) {
	p := newProject(t, nil)
	parent, child := p.parksInChild()
	p.sql(`UPDATE commits SET body = x'7b' WHERE rid = (SELECT rid FROM runs WHERE id = '` + child + `')`)
	if f := p.exits(0, "runs", "show", parent); !strings.Contains(f.out, "  payer  parked: approval_required, and cannot be read  ") {
		t.Errorf("the parent's page:\n%s", f.out)
	}
	if f := p.exits(2, "runs", "approve", parent, "1-1"); !strings.Contains(f.err, "waits for no decision") {
		t.Errorf("a decision: %s", f.err)
	}
	s := p.serve()
	defer s.stop()
	for _, path := range []string{"/v1/runs/" + parent, "/v1/runs/" + parent + "/approvals", "/v1/approvals"} {
		asks[struct{}](s, http.StatusOK, http.MethodGet, path, "")
	}
}
