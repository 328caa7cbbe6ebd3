package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/journal"
)

// change is an event of the stream of all roots.
type change struct{ id, kind, data string }

// watchRuns reads the stream of all roots, after an id, until stop returns what it got.
func (l local) watchRuns(after string) (stop func() []change) {
	ctx, cancel := context.WithCancel(l.t.Context())
	out, ended := &reader{ResponseRecorder: httptest.NewRecorder()}, make(chan struct{})
	r := requestFromHere(ctx, http.MethodGet, "/v1/runs", "", "text/event-stream")
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	go func() {
		defer close(ended)
		conforming(l.t, l.Server).ServeHTTP(out, r)
	}()
	time.Sleep(time.Second)
	return func() (all []change) {
		time.Sleep(time.Second)
		cancel()
		<-ended
		for block := range strings.SplitSeq(out.text(), "\n\n") {
			c := change{}
			for line := range strings.SplitSeq(block, "\n") {
				name, value, _ := strings.Cut(line, ": ")
				switch name {
				case "id":
					c.id = value
				case "event":
					c.kind = value
				case "data":
					c.data = value
				}
			}
			if c.kind != "" {
				all = append(all, c)
			}
		}
		return all
	}
}

// said are what changes say of questions, and the last state of each run.
func said(l local, all []change) (questions []string, states map[string]string) {
	states = map[string]string{}
	for _, c := range all {
		var d struct {
			ID, State, Type, Decision, Approver string
		}
		if err := json.Unmarshal([]byte(c.data), &d); err != nil {
			l.t.Fatal(err)
		}
		if c.kind == "run" {
			states[d.ID] = d.State
		} else {
			questions = append(questions, strings.TrimSpace(strings.Join([]string{c.kind, d.Type, d.Decision, d.Approver}, " ")))
		}
	}
	return questions, states
}

func TestTheStreamOfRunsReportsRootsAndQuestions(t *testing.T) {
	inBubble(t, writing, func(l local, _ string) {
		stop := l.watchRuns("")
		var runs []string
		for range 2 {
			run, path := l.begin("writes")
			runs = append(runs, run.ID)
			l.stands(path)
			time.Sleep(time.Second)
			gets[reply](l, http.StatusOK, http.MethodPost, path+"/reject", `{"callId": "`+run.ID+`-1-1", "reason": "no"}`)
			l.stands(path)
			time.Sleep(time.Second)
		}
		all := stop()
		each := []string{"question tool.pending_approval", "question run.parked", "question tool.approval_resolved rejected http:somebody", "question run.completed"}
		questions, states := said(l, all)
		if diff := cmp.Diff(slices.Concat([]string{"begin"}, each, each), questions); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{runs[0]: "ended", runs[1]: "ended"}, states); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// A reader that reconnects after the first run has ended gets the second one only.
		half := slices.IndexFunc(all, func(c change) bool {
			return c.id != "" && c.kind == "run" && strings.Contains(c.data, `"state":"ended"`)
		})
		questions, states = said(l, l.watchRuns(all[half].id)())
		if diff := cmp.Diff(each, questions); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", all[half].id, diff)
		}
		if diff := cmp.Diff(map[string]string{runs[1]: "ended"}, states); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", all[half].id, diff)
		}
	})
}

func TestTheStreamOfRunsNamesTheRootOfAChange(t *testing.T) {
	inBubble(t, twoEach, func(l local, _ string) {
		stop := l.watchRuns("")
		roots := map[string]bool{l.flow("lasts"): true, l.flow("lasts"): true}
		time.Sleep(time.Hour)
		seen := map[string]bool{}
		for _, c := range stop() {
			var row journal.Run
			if err := json.Unmarshal([]byte(c.data), &row); err != nil {
				t.Fatal(err)
			}
			if c.kind == "run" {
				seen[row.ID] = true
			}
		}
		if diff := cmp.Diff(roots, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRunsAreSelectedByWhatListsShow(t *testing.T) {
	inBubble(t, map[string]string{
		"quick.yaml":        "identity: {name: quick}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n",
		"quick.script.yaml": "- text: done\n",
		"slow.yaml":         "identity: {name: slow}\nmodel_policy: {primary: {model: scripted/slow.script.yaml}}\n",
		"slow.script.yaml":  "- text: done\n  delay: 100h\n",
	}, func(l local, _ string) {
		names := map[string]string{}
		var times []string
		for i, start := range []string{"quick", "slow", "quick", "slow"} {
			run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", fmt.Sprintf(`{"agent": %q, "input": "Task %d"}`, start, i))
			names[run.ID] = fmt.Sprint(start, i)
			time.Sleep(time.Minute)
			times = append(times, run.Created.Add(time.Second).UTC().Format(time.RFC3339))
		}
		gets[reply](l, http.StatusOK, http.MethodPost, "/v1/runs/"+idOfName(names, "slow3")+"/cancel", "{}")
		time.Sleep(time.Second)
		for query, want := range map[string][]string{
			"":                                    {"slow3", "quick2", "slow1", "quick0"},
			"outcome=completed":                   {"quick2", "quick0"},
			"outcome=cancelled":                   {"slow3"},
			"outcome=cancelled&outcome=completed": {"slow3", "quick2", "quick0"},
			"kind=Agent&name=slow":                {"slow3", "slow1"},
			"kind=Workflow":                       {},
			"text=TASK%202":                       {"quick2"},
			"text=slo":                            {"slow3", "slow1"},
			"since=" + times[1]:                   {"slow3", "quick2"},
			"until=" + times[1]:                   {"slow1", "quick0"},
			"since=" + times[0] + "&until=" + times[2] + "&state=ended": {"quick2"},
		} {
			got := []string{}
			for cursor := ""; ; { // one a page: the cursor passes what is not chosen
				page := gets[struct {
					Items []journal.Run
					Next  string
				}](l, http.StatusOK, http.MethodGet, "/v1/runs?limit=1&cursor="+cursor+"&"+query, "")
				for _, run := range page.Items {
					got = append(got, names[run.ID])
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
		for _, query := range []string{"outcome=good", "since=yesterday", "until=2026-01-01"} {
			l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, "/v1/runs?"+query, "")
		}
	})
}

func idOfName(names map[string]string, name string) string {
	for id, n := range names {
		if n == name {
			return id
		}
	}
	return ""
}

func TestARunShowsTheUseOfItsLimits(t *testing.T) {
	inBubble(t, twoEach, func(l local, _ string) {
		limits := func(run string) map[string]budget.Use {
			uses := map[string]budget.Use{}
			for _, u := range gets[struct{ Limits []budget.Use }](l, http.StatusOK, http.MethodGet, "/v1/runs/"+run, "").Limits {
				uses[u.Setting] = u
			}
			return uses
		}
		parked := l.flow("asks")
		l.stands("/v1/runs/" + parked)
		time.Sleep(time.Minute)
		if u := limits(parked)[budget.WallTime]; u.Limit != 3600 || u.Used > 60 {
			t.Errorf("a workflow that waits for a person has used %+v", u)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, "/v1/runs/"+parked+"/budget", `{"setting": "max_wall_time_seconds", "value": 7200}`)
		if u := limits(parked)[budget.WallTime]; u.Limit != 7200 {
			t.Errorf("after it was raised the limit is %+v", u)
		}
		agent := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "answers", "input": "go"}`).ID
		l.stands("/v1/runs/" + agent)
		if diff := cmp.Diff(budget.Use{Setting: budget.CycleCap, Unit: "cycles", Used: 1, Limit: 50}, limits(agent)[budget.CycleCap]); diff != "" {
			t.Errorf("an agent that has ended (-want +got):\n%s", diff)
		}
	})
}
