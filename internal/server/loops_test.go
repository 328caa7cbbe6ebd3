package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// looping are agents with loops: one that a person reviews, one that takes ten seconds
// an iteration, one whose loop is off, and a model of two answers.
var looping = map[string]string{
	"reviewed.yaml": "identity: {name: reviewed}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\n" +
		"loop: {loopEnabled: true, maxIterations: 4, loopCriteria: {type: manual}, on_reject: continue_with_feedback}\n",
	"slow.yaml":         "identity: {name: slow}\nmodel_policy: {primary: {model: scripted/slow.script.yaml}}\nloop: {loopEnabled: true, maxIterations: 3}\n",
	"matches.yaml":      "identity: {name: matches}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\nloop: {loopEnabled: true, loopCriteria: {type: regex, value: first}}\n",
	"off.yaml":          "identity: {name: off}\nmodel_policy: {primary: {model: scripted/quick.script.yaml}}\nloop: {loopEnabled: false}\n",
	"quick.script.yaml": "- text: the first try\n",
	"slow.script.yaml":  "- {text: a slow try, delay: 10s}\n",
}

// envelope is what RondoFlow's API answers.
type envelope struct {
	Success bool
	Error   struct{ Type, Message string }
	Data    struct {
		Active bool
		Run    string
		State  *rondoState
		Review *struct {
			LoopID    string
			Iteration int
			Output    string
		}
	}
}

type rondoState struct {
	Iteration, MaxIterations int
	Criteria                 struct{ Type, Value string }
	Status                   string
	ProgressLog              []string
	SessionID                string
}

const rondoMessage = `{ "message": "Make the failing test suite pass." }`

// inLoops plays with a server of these agents. What says who holds a workspace is a
// file that the test has for itself.
func inLoops(t *testing.T, play func(l local, dir string)) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	inBubble(t, looping, play)
}

// loop asks for something of an agent's loop that must be answered with a status.
func (l local) loop(status int, agent, verb, body string) envelope {
	l.t.Helper()
	method := http.MethodPost
	if verb == "status" {
		method = http.MethodGet
	}
	got := gets[envelope](l, status, method, "/api/agents/"+agent+"/loop/"+verb, body)
	if got.Success != (status < 300) || got.Success != (got.Error.Message == "") {
		l.t.Errorf("%s %s: status %d and %+v", verb, agent, status, got)
	}
	return got
}

// rows: RON-58, RON-60, RON-64..66
func TestTheStatusOfALoopIsThatOfItsJournal(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		if got := l.loop(http.StatusOK, "matches", "status", ""); got.Data.Active || got.Data.State != nil {
			t.Errorf("before there is a loop: %+v", got)
		}
		begun := l.loop(http.StatusAccepted, "matches", "start", rondoMessage)
		time.Sleep(time.Minute)
		if run := l.stands("/v1/runs/" + begun.Data.Run); run.State != journal.Ended {
			t.Fatalf("%+v", run)
		}
		got := l.loop(http.StatusOK, "matches", "status", "").Data
		want := &rondoState{Iteration: 1, MaxIterations: 10, Status: "completed", ProgressLog: []string{"the first try"}}
		want.Criteria.Type, want.Criteria.Value = "regex", "first"
		if diff := cmp.Diff(want, got.State); diff != "" || got.Active {
			t.Errorf("active: %v (-want +got):\n%s", got.Active, diff)
		}
		raw := gets[struct {
			Data struct{ State map[string]json.RawMessage }
		}](l, http.StatusOK, http.MethodGet, "/api/agents/matches/loop/status", "")
		if string(raw.Data.State["sessionId"]) != `""` {
			t.Errorf("the session is %s", raw.Data.State["sessionId"])
		}
	})
}

// hasTask checks what a run and its first iteration were given as their task.
func (l local) hasTask(run, want string) {
	l.t.Helper()
	path := "/v1/runs/" + run
	l.stands(path)
	started, children := happened[event.RunStarted](l, path), happened[event.ChildStarted](l, path)
	if len(started) != 1 || len(children) == 0 {
		l.t.Fatalf("run %s was started as %+v and has the children %+v", run, started, children)
	}
	below := happened[event.RunStarted](l, "/v1/runs/"+children[0].Child)
	for _, d := range append(started, below...) {
		if d.Input == nil || d.Input.Text() != want {
			l.t.Errorf("a run of %s has the input %+v, want %q", run, d.Input, want)
		}
	}
}

// rows: RON-58
func TestEachLoopWorksOnTheMessageOfItsStart(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		for _, message := range []string{"Make the failing test suite pass.", "Now write the changelog."} {
			l.hasTask(l.loop(http.StatusAccepted, "matches", "start", `{"message": "`+message+`"}`).Data.Run, message)
		}
	})
}

// rows: RON-64, RON-65
func TestTheStatusSaysWhatEachLoopIsAt(t *testing.T) {
	type criteria = struct{ Type, Value string }
	logged := []string{"a slow try", "a slow try"}
	for name, c := range map[string]struct {
		agent, then string
		after       time.Duration
		want        rondoState
	}{
		"in its third iteration":  {"slow", "", 25 * time.Second, rondoState{3, 3, criteria{"max_iterations", ""}, "running", logged, ""}},
		"paused after its second": {"slow", "pause", 15 * time.Second, rondoState{2, 3, criteria{"max_iterations", ""}, "paused", logged, ""}},
		"waiting for a person":    {"reviewed", "", time.Minute, rondoState{1, 4, criteria{"manual", ""}, "paused", []string{"the first try"}, ""}},
		"failed":                  {"broken", "", time.Minute, rondoState{1, 3, criteria{"max_iterations", ""}, "failed", []string{"It failed: no such key"}, ""}},
		"with a command":          {"tested", "", time.Minute, rondoState{2, 2, criteria{"test_pass", "false"}, "completed", []string{"the first try", "the first try"}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			inSockets(t, more, func(on connected) {
				on.loop(http.StatusAccepted, c.agent, "start", rondoMessage)
				time.Sleep(c.after)
				if c.then != "" {
					on.loop(http.StatusOK, c.agent, c.then, "")
					time.Sleep(time.Minute)
				}
				got := on.loop(http.StatusOK, c.agent, "status", "").Data
				if diff := cmp.Diff(&c.want, got.State); diff != "" {
					t.Errorf("active: %v (-want +got):\n%s", got.Active, diff)
				}
				if got.Active {
					on.loop(http.StatusOK, c.agent, "stop", "")
				}
			})
		})
	}
}

// rows: RON-62, RON-63
func TestALoopStartsWhereItIsEnabledAndNoneRuns(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		for agent, want := range map[string]struct {
			status int
			kind   string
		}{"off": {http.StatusConflict, "LOOP_OFF"}, "nobody": {http.StatusNotFound, "NOT_FOUND"}} {
			if got := l.loop(want.status, agent, "start", rondoMessage); got.Error.Type != want.kind {
				t.Errorf("%s: %+v", agent, got)
			}
		}
		for _, body := range []string{"", `{}`, `{"message": " "}`, `{"message": 1}`, `{"text": "x"}`} {
			l.loop(http.StatusBadRequest, "slow", "start", body)
		}
		run := l.loop(http.StatusAccepted, "slow", "start", rondoMessage).Data.Run
		if got := l.loop(http.StatusOK, "slow", "status", "").Data; !got.Active || got.Run != run || got.State.Status != "running" {
			t.Errorf("it runs as %+v", got)
		}
		if got := l.loop(http.StatusConflict, "slow", "start", rondoMessage); got.Error.Type != "LOOP_RUNS" || !strings.Contains(got.Error.Message, run) {
			t.Errorf("a second one: %+v", got)
		}
	})
}

// rows: RON-61
//
// What is decided counts once, and is about the loop that asked.
func TestAPersonDecidesAboutAnIteration(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		run := l.loop(http.StatusAccepted, "reviewed", "start", rondoMessage).Data.Run
		path := "/v1/runs/" + run
		l.stands(path)
		got := l.loop(http.StatusOK, "reviewed", "status", "").Data
		if r := got.Review; r == nil || r.LoopID != run+"/review-1" || r.Iteration != 1 || r.Output != "the first try" || got.State.Status != "paused" {
			t.Fatalf("it asks %+v as %+v", r, got.State)
		}
		said := func(id, approved string) string { return `{"loopId": "` + id + `", "approved": ` + approved + `}` }
		for _, body := range []string{"", `{}`, `{"approved": true}`, `{"loopId": "x"}`, said("x", `"yes"`)} {
			l.loop(http.StatusBadRequest, "reviewed", "approve", body)
		}
		l.loop(http.StatusNotFound, "reviewed", "approve", said("x", "true"))
		l.loop(http.StatusNotFound, "reviewed", "approve", said("another/review-1", "true"))
		l.loop(http.StatusOK, "reviewed", "approve", said(run+"/review-1", "false"))
		l.stands(path)
		if got := l.loop(http.StatusConflict, "reviewed", "approve", said(run+"/review-1", "true")); got.Error.Type != "ALREADY_DECIDED" {
			t.Errorf("what was decided is decided again: %+v", got)
		}
		l.loop(http.StatusOK, "reviewed", "approve", said(run+"/review-2", "true"))
		l.stands(path)
		if got := l.loop(http.StatusOK, "reviewed", "status", "").Data; got.Active || got.State.Status != "completed" || got.State.Iteration != 2 || got.Review != nil {
			t.Errorf("approved, it is %+v", got.State)
		}
		var kinds []event.ApprovalKind
		for _, r := range happened[event.ReviewResolved](l, path) {
			kinds = append(kinds, r.Kind)
		}
		if want := []event.ApprovalKind{event.ApprovalRejected, event.ApprovalApproved}; !cmp.Equal(kinds, want) {
			t.Errorf("decided was %v", kinds)
		}
		l.loop(http.StatusConflict, "reviewed", "approve", said(run+"/review-2", "true"))
	})
}

// rows: RON-59
//
// A stop closes what the loop asks, and is no rejection.
func TestAStoppedLoopIsCancelled(t *testing.T) {
	for agent, after := range map[string]time.Duration{"reviewed": time.Minute, "slow": 5 * time.Second} {
		t.Run(agent, func(t *testing.T) {
			inLoops(t, func(l local, _ string) {
				l.loop(http.StatusConflict, agent, "stop", "")
				run := l.loop(http.StatusAccepted, agent, "start", rondoMessage).Data.Run
				time.Sleep(after)
				if got := l.loop(http.StatusOK, agent, "stop", "").Data; got.Active || got.Review != nil || got.State.Status != "failed" {
					t.Errorf("stopped, it is %+v", got)
				}
				path := "/v1/runs/" + run
				if row := l.stands(path); row.State != journal.Ended || row.Detail != string(event.ReasonCancelled) {
					t.Errorf("the run is %s: %s", row.State, row.Detail)
				}
				for _, r := range happened[event.ReviewResolved](l, path) {
					if r.Kind != event.ApprovalCancelled {
						t.Errorf("the review is %s", r.Kind)
					}
				}
				l.loop(http.StatusConflict, agent, "stop", "")
				l.loop(http.StatusAccepted, agent, "start", rondoMessage)
				l.loop(http.StatusOK, agent, "stop", "")
			})
		})
	}
}

// rows: RON-43, RON-44
func TestAPausedLoopGoesOnWhereItIsResumed(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		run := l.loop(http.StatusAccepted, "slow", "start", rondoMessage).Data.Run
		time.Sleep(15 * time.Second)
		if got := l.loop(http.StatusOK, "slow", "status", "").Data.State; got.Iteration != 2 || len(got.ProgressLog) != 1 {
			t.Errorf("in its second iteration it is %+v", got)
		}
		l.loop(http.StatusOK, "slow", "pause", "")
		time.Sleep(time.Hour)
		if got := l.loop(http.StatusOK, "slow", "status", "").Data; !got.Active || got.State.Status != "paused" {
			t.Errorf("an hour later it is %+v", got.State)
		}
		l.loop(http.StatusConflict, "slow", "pause", "")
		l.loop(http.StatusConflict, "slow", "start", rondoMessage)
		if got := l.loop(http.StatusOK, "slow", "resume", "").Data; got.State.Status != "running" {
			t.Errorf("resumed, it is %+v", got.State)
		}
		l.loop(http.StatusConflict, "slow", "resume", "")
		time.Sleep(time.Minute)
		l.stands("/v1/runs/" + run)
		if got := l.loop(http.StatusOK, "slow", "status", "").Data.State; got.Status != "completed" || got.Iteration != 3 {
			t.Errorf("it comes to %+v", got)
		}
		l.loop(http.StatusConflict, "slow", "resume", "")
	})
}

// rows: RON-63
//
// It is the journal that knows of a loop, not the server that started it.
func TestAnotherServerKnowsOfTheLoop(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		first, _ := newServerOn(t, store, looping)
		run := local{first, t}.loop(http.StatusAccepted, "reviewed", "start", rondoMessage).Data.Run
		synctest.Wait()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second, _ := newServerOn(t, store, looping)
		l := local{second, t}
		if got := l.loop(http.StatusOK, "reviewed", "status", "").Data; got.Run != run || !got.Active || got.State.Iteration != 1 || got.Review == nil {
			t.Errorf("the second server says %+v", got)
		}
		if got := l.loop(http.StatusConflict, "reviewed", "start", rondoMessage); got.Error.Type != "LOOP_RUNS" {
			t.Errorf("a second loop: %+v", got)
		}
		other := maps.Clone(looping)
		other["reviewed.yaml"] += "# of another project\n"
		third, _ := newServerOn(t, store, other)
		if got := (local{third, t}).loop(http.StatusOK, "reviewed", "status", "").Data; got.Active {
			t.Errorf("the loop of an agent of the same name in another directory is %+v", got)
		}
		l.loop(http.StatusOK, "reviewed", "stop", "")
	})
}

// rows: RON-63
func TestOfStartsAtOnceOneCounts(t *testing.T) {
	inLoops(t, func(l local, _ string) {
		answers := make([]*httptest.ResponseRecorder, 8)
		var all sync.WaitGroup
		for i := range answers {
			answers[i] = httptest.NewRecorder()
			all.Go(func() { l.serve(answers[i], http.MethodPost, "/api/agents/reviewed/loop/start", rondoMessage) })
		}
		all.Wait()
		codes := map[int]int{}
		for _, w := range answers {
			codes[w.Code]++
		}
		if codes[http.StatusAccepted] != 1 || codes[http.StatusConflict] != 7 {
			t.Errorf("eight starts get %v", codes)
		}
		synctest.Wait()
	})
}

// rows: RON-55..57
func TestAViewerSeesALoopAndTellsItNothing(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	inGate(t, looping, func(g gated) {
		if w := g.as(g.given["editor"], http.MethodPost, "/api/agents/slow/loop/start", rondoMessage); w.Code != http.StatusAccepted {
			t.Fatalf("an editor gets %d: %s", w.Code, w.Body)
		}
		for verb, body := range map[string]string{"start": rondoMessage, "stop": "", "approve": `{"loopId": "x", "approved": true}`, "pause": "", "resume": ""} {
			w := g.as(g.given["viewer"], http.MethodPost, "/api/agents/slow/loop/"+verb, body)
			var got envelope
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusForbidden {
				t.Errorf("%s: %d, %v: %s", verb, w.Code, err, w.Body)
			}
			if got.Success || got.Error.Type != "POLICY_ERROR" || got.Error.Message != "Your role does not permit running or modifying workflows" {
				t.Errorf("%s: %+v", verb, got)
			}
		}
		if w := g.as(g.given["viewer"], http.MethodGet, "/api/agents/slow/loop/status", ""); !strings.Contains(w.Body.String(), `"active":true`) {
			t.Errorf("a viewer sees %s", w.Body)
		}
	})
}
