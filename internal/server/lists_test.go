package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/machine/versions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// pages are the items of all pages of a list, which must be no longer than
// limit.
func pages[T any](l local, path string, limit int) (items []T) {
	l.t.Helper()
	for cursor := ""; ; {
		page := gets[struct {
			Items []T
			Next  string
		}](l, http.StatusOK, http.MethodGet, fmt.Sprintf("%s?limit=%d&cursor=%s", path, limit, cursor), "")
		if len(page.Items) > limit {
			l.t.Errorf("%s: a page has %d items", path, len(page.Items))
		}
		items = append(items, page.Items...)
		if cursor = page.Next; cursor == "" {
			return items
		}
	}
}

func TestEveryCallThatWaitsIsListedWithItsRun(t *testing.T) {
	inBubble(t, writing, func(l local, _ string) {
		var runs, calls []string
		for range 3 {
			run, path := l.begin("writes")
			l.stands(path)
			runs, calls = append([]string{run.ID}, runs...), append([]string{run.ID + "-1-1"}, calls...)
		}
		type waiting struct{ Run, CallID, Tool string }
		listed := func(limit int) (ids []string) {
			for i, w := range pages[waiting](l, "/v1/approvals", limit) {
				if ids = append(ids, w.CallID); w.Tool != "fs.write" || !strings.HasPrefix(w.CallID, w.Run) {
					t.Errorf("call %d is %+v", i, w)
				}
			}
			return ids
		}
		for _, limit := range []int{1, 2, 3, 50} {
			if diff := cmp.Diff(calls, listed(limit)); diff != "" {
				t.Errorf("%d a page (-want +got):\n%s", limit, diff)
			}
		}
		gets[reply](l, http.StatusOK, http.MethodPost, "/v1/runs/"+runs[1]+"/reject", `{"callId": "`+calls[1]+`", "reason": "no"}`)
		l.stands("/v1/runs/" + runs[1])
		if diff := cmp.Diff([]string{calls[0], calls[2]}, listed(50)); diff != "" {
			t.Errorf("after a decision (-want +got):\n%s", diff)
		}
	})
}

// There may be many that are not resumed yet, and they may be long.
func TestTheListOfCallsThatWaitReadsNoAnsweredRunWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New(nil)}
		s, _ := newServerOn(t, store, map[string]string{
			"writes.yaml": strings.Replace(writing["writes.yaml"], "[fs.write]", "[fs.list, fs.write]", 1),
			"writes.script.yaml": strings.Repeat("- tool_calls: [{name: fs.list, arguments: {path: .}}]\n", 3) +
				writing["writes.script.yaml"],
		})
		l := local{s, t}
		run, path := l.begin("writes")
		l.stands(path)
		calls := pages[event.ToolPendingApproval](l, "/v1/approvals", 50)
		if len(calls) != 1 {
			t.Fatalf("%d calls wait", len(calls))
		}
		elsewhere := engine.New(store, versions.Make, engine.Options{})
		defer elsewhere.Close()
		if err := elsewhere.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Reject, CallID: calls[0].CallID, Text: "no"}); err != nil {
			t.Fatal(err)
		}
		whole := l.stands(path).Seq
		store.read.Store(0)
		if calls := pages[event.ToolPendingApproval](l, "/v1/approvals", 50); len(calls) > 0 {
			t.Errorf("these wait: %+v", calls)
		}
		if n := store.read.Load(); n >= whole {
			t.Errorf("%d records were read of a run of %d events", n, whole)
		}
	})
}

// It cannot be decided any more: the run only has to be resumed.
func TestExpiredCallIsNotListedAsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServerOn(t, memory.New(nil), map[string]string{
			"writes.yaml": writing["writes.yaml"] + "\napprovals: {timeout: 1m}\n", "writes.script.yaml": writing["writes.script.yaml"],
		})
		l := local{s, t}
		_, path := l.begin("writes")
		l.stands(path)
		for _, want := range []struct {
			waiting int
			expired bool
		}{{1, false}, {0, true}} {
			calls, listed := pages[event.ToolPendingApproval](l, "/v1/approvals", 50), pages[control.RunStatus](l, "/v1/runs", 50)
			if len(calls) != want.waiting || len(listed) != 1 || listed[0].Expired != want.expired {
				t.Errorf("these wait: %+v; the run is listed as %+v", calls, listed)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// It was decided from a command line and is not resumed yet.
func TestARunThatOnlyHasToBeResumedIsListedAsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		s, _ := newServerOn(t, store, writing)
		l := local{s, t}
		run, path := l.begin("writes")
		says := func(answered bool) {
			t.Helper()
			l.stands(path)
			listed := pages[control.RunStatus](l, "/v1/runs", 50)
			shown := gets[control.RunStatus](l, http.StatusOK, http.MethodGet, path, "")
			if len(listed) != 1 || listed[0].Answered != answered || shown.Answered != answered || listed[0].ID != run.ID {
				t.Errorf("listed as %+v, shown as %+v; want answered %t", listed, shown, answered)
			}
		}
		says(false)
		elsewhere := engine.New(store, versions.Make, engine.Options{})
		defer elsewhere.Close()
		if err := elsewhere.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Reject, CallID: run.ID + "-1-1", Text: "no"}); err != nil {
			t.Fatal(err)
		}
		says(true)
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/resume", "")
		says(false)
	})
}

func TestEveryAgentOfTheDirectoryIsListedAndSaysWhyItCannotRun(t *testing.T) {
	files := map[string]string{
		"broken.yaml": "identity: {name: broken, version: 1.2.3, description: Breaks.}\nmodel_policy: {primary: {model: scripted/nowhere.yaml}}\n",
		"notes.yaml":  "- bread\n- milk\n",
		"notes.txt":   "identity: {name: a text}\n",
	}
	maps.Copy(files, thinking)
	maps.Copy(files, writing)
	s, _ := newServer(t, files)
	l := local{s, t}
	type agent struct{ Name, Version, Description, File, Problem string }
	for _, limit := range []int{1, 2, 50} {
		agents := pages[agent](l, "/v1/agents", limit)
		names := []string{}
		for _, a := range agents {
			names = append(names, a.Name)
			if broken := a.Name == "broken"; broken != strings.Contains(a.Problem, "nowhere.yaml") {
				t.Errorf("%s has the problem %q", a.Name, a.Problem)
			}
		}
		if want := []string{"broken", "thinks", "writes"}; !slices.Equal(names, want) {
			t.Errorf("%d a page: %v, want %v", limit, names, want)
		}
		if a := agents[0]; a.Version != "1.2.3" || a.Description != "Breaks." || a.File != "broken.yaml" {
			t.Errorf("the first is %+v", a)
		}
	}
	l.refuses(http.StatusUnprocessableEntity, "bad-agent", http.MethodPost, "/v1/runs", `{"agent": "broken"}`)
	l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, "/v1/agents?limit=0", "")
}

// Runs of one agent differ by what they were given.
func TestTheListSaysWhatEachRunIsAbout(t *testing.T) {
	inBubble(t, map[string]string{
		"quick.yaml":        "identity: {name: quick}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n",
		"quick.script.yaml": "- text: done\n",
	}, func(l local, _ string) {
		for _, input := range []string{"Fix the\n  tests.", strings.Repeat("é ", 200)} {
			body, err := json.Marshal(map[string]string{"agent": "quick", "input": input})
			if err != nil {
				t.Fatal(err)
			}
			gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", string(body))
			time.Sleep(time.Second)
		}
		var got []string
		for _, run := range pages[struct{ Input string }](l, "/v1/runs", 1) {
			got = append(got, run.Input)
		}
		if want := []string{strings.Repeat("é ", 66) + "é…", "Fix the tests."}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}
