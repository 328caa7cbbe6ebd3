package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// thinking takes ten seconds for each of its two answers.
var thinking = map[string]string{
	"thinks.yaml": "identity: {name: thinks}\nmodel_policy: {primary: {model: scripted/thinks.script.yaml}}\ntools: {allow: [fs.list]}\n",
	"thinks.script.yaml": "- text: let me see\n  delay: 10s\n  tool_calls: [{name: fs.list, arguments: {path: .}}]\n" +
		"- text: the end\n  delay: 10s\n",
}

// writing asks before it writes a file.
var writing = map[string]string{
	"writes.yaml":        "identity: {name: writes}\nmodel_policy: {primary: {model: scripted/writes.script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n",
	"writes.script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: asked.txt, content: asked}}]\n- text: the end\n",
}

// anyUser is the user of these servers.
var anyUser = event.Principal{Name: "somebody", Role: "admin", Proof: event.ProofNone}

// inBubble plays with a server where time is virtual.
func inBubble(t *testing.T, files map[string]string, play func(l local, dir string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, dir := newServer(t, files)
		play(local{s, t}, dir)
	})
}

// reply is what a request that acts on a run gets.
type reply struct {
	Run         string
	Live, Taken bool
	State       journal.State
	Decision    *event.ToolApprovalResolved
}

// stands is the run as it stands when nothing moves any more.
func (l local) stands(path string) journal.Run {
	l.t.Helper()
	synctest.Wait()
	return gets[journal.Run](l, http.StatusOK, http.MethodGet, path, "")
}

// happened are the payloads of one type among a run's events.
func happened[T event.Data](l local, path string) (out []T) {
	l.t.Helper()
	for _, e := range gets[struct{ Items []event.Event }](l, http.StatusOK, http.MethodGet, path+"/events?limit=500", "").Items {
		if d, ok := e.Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}

func TestAPausedRunStandsStillUntilItIsResumed(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		_, path := l.begin("thinks")
		time.Sleep(time.Second)
		if got := gets[reply](l, http.StatusOK, http.MethodPost, path+"/pause", ""); !got.Live || !got.Taken {
			t.Errorf("pause gets %+v", got)
		}
		if run := gets[control.RunStatus](l, http.StatusOK, http.MethodGet, path, ""); !run.Pausing {
			t.Errorf("it does not say that it will pause: %+v", run)
		}
		time.Sleep(time.Hour)
		if run := l.stands(path); run.State != journal.Paused || run.Owner != "" {
			t.Fatalf("an hour later the run is %s, driven by %q", run.State, run.Owner)
		}
		l.refuses(http.StatusConflict, "run-stands-still", http.MethodPost, path+"/pause", "")
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/resume", "")
		l.refuses(http.StatusConflict, "run-driven", http.MethodPost, path+"/resume", "")
		time.Sleep(time.Minute)
		if run := l.stands(path); run.State != journal.Ended || run.Cycles != 2 {
			t.Errorf("it goes on to %+v", run)
		}
	})
}

// Its next request would end it as failed, for good.
func TestARunWhoseModelCannotBeHadIsNotGoneOnWith(t *testing.T) {
	inBubble(t, writing, func(l local, dir string) {
		_, path := l.begin("writes")
		before := l.stands(path)
		script := filepath.Join(dir, "writes.script.yaml")
		if err := os.Rename(script, script+".gone"); err != nil {
			t.Fatal(err)
		}
		p := l.refuses(http.StatusConflict, "cannot-go-on", http.MethodPost, path+"/resume", "")
		if !strings.Contains(p.Detail, "writes.script.yaml") || p.Next == "" || p.Run != before.ID {
			t.Errorf("%+v", p)
		}
		if after := l.stands(path); after.State != journal.Parked || after.Seq != before.Seq || after.Owner != "" {
			t.Errorf("it is %+v", after)
		}
		if err := os.Rename(script+".gone", script); err != nil {
			t.Fatal(err)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/resume", "")
	})
}

func TestAMessageReachesARunThatGoes(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		_, path := l.begin("thinks")
		time.Sleep(time.Second)
		for body, pointer := range map[string]string{`{}`: "/text", `{"text": " "}`: "/text", `{"text": 7}`: "/text", `{"words": "x"}`: "/words"} {
			if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/input", body); p.Pointer != pointer {
				t.Errorf("%s: the place is %q, want %q", body, p.Pointer, pointer)
			}
		}
		if got := gets[reply](l, http.StatusOK, http.MethodPost, path+"/input", `{"text": "and be quick"}`); !got.Taken {
			t.Errorf("input gets %+v", got)
		}
		time.Sleep(time.Minute)
		l.stands(path)
		want := []event.InputReceived{{Text: "and be quick", By: "http:somebody", Command: 1, Principal: anyUser}}
		if diff := cmp.Diff(want, happened[event.InputReceived](l, path)); diff != "" {
			t.Errorf("the run has heard (-want +got):\n%s", diff)
		}
		l.refuses(http.StatusConflict, "run-ended", http.MethodPost, path+"/input", `{"text": "one more thing"}`)
	})
}

func TestACancelledRunEndsAtOnceAndKnowsWhoseWordItWas(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		_, path := l.begin("thinks")
		time.Sleep(time.Second)
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/cancel", `{"reason": "too slow"}`)
		if run := l.stands(path); run.State != journal.Ended || run.Detail != string(event.ReasonCancelled) {
			t.Errorf("the run is %s: %s", run.State, run.Detail)
		}
		want := []event.CancelRequested{{By: "http:somebody", Reason: "too slow", Principal: anyUser}}
		if diff := cmp.Diff(want, happened[event.CancelRequested](l, path)); diff != "" {
			t.Errorf("the run has heard (-want +got):\n%s", diff)
		}
		for _, verb := range []string{"cancel", "pause", "resume"} {
			l.refuses(http.StatusConflict, "run-ended", http.MethodPost, path+"/"+verb, "")
		}
	})
}

// A client whose decision counts may act on it: with ten of them nine would be wrong.
func TestExactlyOneOfEqualConcurrentDecisionsCounts(t *testing.T) {
	for verb, said := range map[string]string{"approve": `"reason": "fine"`, "reject": `"reason": "no"`, "approve with arguments": `"args": {"path": "told.txt", "content": "told"}`} {
		t.Run(verb, func(t *testing.T) {
			inBubble(t, writing, func(l local, _ string) {
				run, path := l.begin("writes")
				l.stands(path)
				method, _, _ := strings.Cut(verb, " ")
				body := `{"callId": "` + run.ID + `-1-1", ` + said + `}`
				answers := make([]*httptest.ResponseRecorder, 10)
				var all sync.WaitGroup
				for i := range answers {
					answers[i] = httptest.NewRecorder()
					all.Go(func() { l.serve(answers[i], http.MethodPost, path+"/"+method, body) })
				}
				all.Wait()
				codes := map[int]int{}
				for _, w := range answers {
					codes[w.Code]++
					if w.Code != http.StatusOK && !strings.Contains(w.Body.String(), "already-decided") {
						t.Errorf("one gets %s", w.Body)
					}
				}
				if codes[http.StatusOK] != 1 || codes[http.StatusConflict] != 9 {
					t.Errorf("ten equal decisions get %v", codes)
				}
			})
		})
	}
}

func TestAnApprovalMayGiveTheCallOtherArguments(t *testing.T) {
	inBubble(t, writing, func(l local, dir string) {
		run, path := l.begin("writes")
		l.stands(path)
		call := run.ID + "-1-1"
		for args, status := range map[string]int{
			`{"path": 7, "content": "x"}`: http.StatusUnprocessableEntity,
			`{"content": "x"}`:            http.StatusUnprocessableEntity,
			`"told.txt"`:                  http.StatusUnprocessableEntity,
			`null`:                        http.StatusBadRequest,
		} {
			body := `{"callId": "` + call + `", "args": ` + args + `}`
			if p := gets[struct{ Pointer string }](l, status, http.MethodPost, path+"/approve", body); p.Pointer != "/args" {
				t.Errorf("%s: the place is %q", args, p.Pointer)
			}
		}
		for _, verb := range []string{"approve", "reject"} {
			changed := `{"callId": "` + call + `", "digest": "of another question", "reason": "no"}`
			if p := gets[struct{ Pointer string }](l, http.StatusConflict, http.MethodPost, path+"/"+verb, changed); p.Pointer != "/digest" {
				t.Errorf("%s of another question: the place is %q", verb, p.Pointer)
			}
		}
		body := `{"callId": "` + call + `", "reason": "there", "args": {"path": "told.txt", "content": "told"}}`
		if got := gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", body); got.Decision == nil || got.Decision.Approver != "http:somebody" || got.Decision.Principal != anyUser {
			t.Errorf("approve gets %+v", got)
		}
		if run := l.stands(path); run.State != journal.Ended {
			t.Errorf("the run is %s: %s", run.State, run.Detail)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "told.txt")); string(text) != "told" {
			t.Errorf("told.txt holds %q, %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "asked.txt")); err == nil {
			t.Error("the call ran with the arguments that nobody approved")
		}
		l.refuses(http.StatusConflict, "already-decided", http.MethodPost, path+"/reject", `{"callId": "`+call+`", "reason": "no"}`)
	})
}

// slowPark is a store that takes a moment to return once a run has parked: the run is
// parked, and its driver is still there.
type slowPark struct{ journal.Store }

const leaves = 100 * time.Millisecond

func (s slowPark) Append(ctx context.Context, b journal.Batch) (int64, error) {
	pos, err := s.Store.Append(ctx, b)
	if b.Status.State == journal.Parked {
		time.Sleep(leaves)
	}
	return pos, err
}

// A decision that meets a driver which is about to leave drives the run on as soon as that
// driver has left.
func TestADecisionWaitsForTheDriverThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServerOn(t, slowPark{memory.New(nil)}, writing)
		l := local{s, t}
		for range 2 {
			started, path := l.begin("writes")
			if run := l.stands(path); run.State != journal.Parked {
				t.Fatalf("it is %s", run.State)
			}
			gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+started.ID+`-1-1"}`)
			time.Sleep(leaves)
			if run := l.stands(path); run.State != journal.Ended {
				t.Errorf("when the driver has left, the run is %s", run.State)
			}
		}
	})
}
