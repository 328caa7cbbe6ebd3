package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm/scripted"
)

// A typing slip in what a list is asked for is not the end of the list.
func TestAListSaysWhatItCannotBeAskedFor(t *testing.T) {
	inBubble(t, writing, func(l local, _ string) {
		run, path := l.begin("writes")
		l.stands(path)
		for path, names := range map[string]string{
			"/v1/runs?state=asleep":               "asleep",
			"/v1/runs?state=parked&state=Parked":  "Parked",
			"/v1/runs?state=":                     `""`,
			"/v1/runs?cursor=nowhere":             "nowhere",
			"/v1/approvals?cursor=nowhere":        "nowhere",
			"/v1/agents?cursor=nowhere":           "nowhere",
			"/v1/agents?cursor=writes":            "writes",
			"/v1/agents?cursor=agents:nowhere":    "nowhere",
			"/v1/runs?cursor=runs:nowhere":        "nowhere",
			"/v1/runs?cursor=agents:writes.yaml":  "agents:writes.yaml",
			"/v1/runs?cursor=questions:" + run.ID: "questions",
			"/v1/questions?cursor=runs:" + run.ID: "runs:",
			"/v1/runs?cursor=" + run.ID:           run.ID,
			"/v1/audit?cursor=runs:1":             "runs:1",
			path + "/tree?cursor=runs:" + run.ID:  "runs:",
		} {
			if p := l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path, ""); !strings.Contains(p.Detail, names) {
				t.Errorf("%s: %q does not name %s", path, p.Detail, names)
			}
		}
		if p := l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, "/v1/runs?state=asleep", ""); !strings.Contains(p.Next, "queued, running, waiting, parked, paused or ended") {
			t.Errorf("the states are not named: %q", p.Next)
		}
		for _, path := range []string{"/v1/runs?cursor=runs:" + run.ID, "/v1/approvals?cursor=questions:" + run.ID, "/v1/agents?cursor=agents:writes.yaml", "/v1/runs?state=ended"} {
			if page := gets[struct{ Items []any }](l, http.StatusOK, http.MethodGet, path, ""); len(page.Items) != 0 {
				t.Errorf("%s: %v behind the last one", path, page.Items)
			}
		}
		if page := gets[struct{ Items []any }](l, http.StatusOK, http.MethodGet, "/v1/runs?state=parked&state=paused", ""); len(page.Items) != 1 {
			t.Errorf("the parked runs are %v", page.Items)
		}
	})
}

// Who reads a problem knows runs, calls and agents, not the packages of Pawl.
func TestAProblemSpeaksOfNothingInside(t *testing.T) {
	files := maps.Clone(writing)
	files["ends.yaml"] = "identity: {name: ends}\nmodel_policy: {primary: {model: scripted/ends.script.yaml}}\n"
	files["ends.script.yaml"] = "- text: the end\n"
	inside := regexp.MustCompile(`\b(agent|control|engine|journal|launch|llm|memory|resolve|server|spec|sqlite): `)
	inBubble(t, files, func(l local, _ string) {
		_, parked := l.begin("writes")
		ended, over := l.begin("ends")
		l.stands(over)
		for _, c := range []struct{ path, body string }{
			{"/v1/runs/none/approve", `{"callId": "1-1"}`},
			{"/v1/runs/none/resume", ""},
			{"/v1/runs", `{"agent": "none"}`},
			{"/v1/runs", `{"agent": "ends", "model": "none/x"}`},
			{"/v1/runs", `{"agent": "ends", "model": "replay/none"}`},
			{"/v1/runs", `{"agent": "ends", "vars": {"none": "x"}}`},
			{parked + "/approve", `{"callId": "9-9"}`},
			{over + "/input", `{"text": "more"}`},
			{over + "/cancel", ""},
			{over + "/pause", ""},
			{over + "/resume", ""},
			{over + "/approve", `{"callId": "` + ended.ID + `-1-1"}`},
		} {
			w := httptest.NewRecorder()
			l.serve(w, http.MethodPost, c.path, c.body)
			var p server.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code < 400 || p.Detail == "" || inside.MatchString(p.Detail) {
				t.Errorf("%s %s: status %d, %q, %v", c.path, c.body, w.Code, p.Detail, err)
			}
		}
		if p := l.refuses(http.StatusNotFound, "not-found", http.MethodGet, "/v1/runs/none", ""); p.Detail != `there is no run "none"` {
			t.Errorf("%q", p.Detail)
		}
	})
}

// failing is a journal that reads and does not write.
type failing struct {
	journal.Store
	why error
}

func (f *failing) Release(ctx context.Context, l journal.Lease) error {
	if f.why != nil {
		return fmt.Errorf("memory: release: %w", f.why)
	}
	return f.Store.Release(ctx, l)
}

// Who sends runs to a server whose journal takes nothing any more would lose
// them all.
func TestAServerWhoseJournalTakesNothingIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: memory.New(nil)}
		s, _ := newServerOn(t, store, nil)
		l := local{s, t}
		gets[any](l, http.StatusOK, http.MethodGet, "/readyz", "")
		for why, says := range map[error]string{
			journal.ErrIO: "disk", journal.ErrReplaced: "replaced", journal.ErrFull: "no space", engine.ErrNotPending: "cannot be written",
		} {
			store.why = why
			if p := l.refuses(http.StatusServiceUnavailable, "unavailable", http.MethodGet, "/readyz", ""); !strings.Contains(p.Detail, says) {
				t.Errorf("%v: %q", why, p.Detail)
			}
		}
		gets[any](l, http.StatusOK, http.MethodGet, "/healthz", "")
	})
}

func TestARunThatAProgramStartedGoesOnInThatProgramOnly(t *testing.T) {
	store := memory.New(nil)
	payer := pawl.Agent{
		Model: pawl.Target{Name: "test/m", Client: scripted.New("test",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "pay", Arguments: []byte("{}")}}})},
		Approvals: pawl.Approvals{Tools: []string{"pay"}, Mode: pawl.ApprovePark},
	}
	payer.Tools = append(payer.Tools, pawl.Tool("pay", "Pays.", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	run, err := payer.Start(t.Context(), "Pay.", pawl.Options{Journal: store})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := run.Wait(); err != nil || s.Status != pawl.StatusParked {
		t.Fatalf("%+v, %v", s, err)
	}
	s, _ := newServerOn(t, store, nil)
	l := local{s, t}
	path := "/v1/runs/" + run.ID()
	p := l.refuses(http.StatusConflict, "cannot-go-on", http.MethodPost, path+"/resume", "")
	if !strings.Contains(p.Detail, "started by a program") || !strings.Contains(p.Next, "in that program") || p.Run != run.ID() {
		t.Errorf("%+v", p)
	}
}
