package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// doing has an agent that reads, writes, has a write refused and runs a command.
var doing = map[string]string{
	"does.yaml": "identity: {name: does}\nmodel_policy: {primary: {model: scripted/does.script.yaml}}\ntools: {allow: [fs.read, fs.write, shell.exec], rules: [{deny: fs.write, path: 'no/**'}]}\n",
	"does.script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: first.txt, content: x}}]\n" +
		"- tool_calls: [{name: fs.read, arguments: {path: first.txt}}, {name: fs.write, arguments: {path: no/a.txt, content: x}}, {name: fs.write, arguments: {path: second.txt, content: x}}]\n" +
		"- tool_calls: [{name: shell.exec, arguments: {command: touch third.txt}}]\n- text: the end\n- text: after the end\n",
	"asks.yaml":    "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/asks.script}}\ntools: {allow: [does], agents: [{file: does.yaml, name: does, description: does}]}\n",
	"asks.script":  "- tool_calls: [{name: does, arguments: {task: go}}]\n- text: all is done\n",
	"other.script": "- text: another end\n",
}

// cycleEnds are the numbers of the events after the calls of each cycle.
func cycleEnds(l local, path string) (seqs []int64) {
	l.t.Helper()
	for _, e := range gets[struct{ Items []event.Event }](l, http.StatusOK, http.MethodGet, path+"/events?limit=500", "").Items {
		if e.Type() == event.TypeToolResults {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func TestAnEndedRunIsContinuedWithAMessage(t *testing.T) {
	inBubble(t, doing, func(l local, _ string) {
		run, path := l.begin("does")
		l.refuses(http.StatusConflict, "run-not-ended", http.MethodPost, path+"/continue", `{"text": "more"}`)
		l.until(path, journal.Ended)
		head := l.stands(path).Head
		if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/continue", `{"text": ""}`); p.Pointer != "/text" {
			t.Errorf("without a message: %+v", p)
		}
		l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/continue", `{"text": "more", "budget": 0}`)
		next := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/continue", `{"text": "and now?"}`)
		l.until("/v1/runs/"+next.ID, journal.Ended)
		started := happened[event.RunStarted](l, "/v1/runs/"+next.ID)[0]
		if started.From == nil || started.From.Run != run.ID || !strings.Contains(fmt.Sprint(started.Input), "and now?") || started.Principal != anyUser {
			t.Errorf("it began with %+v by %+v", started.Input, started.Principal)
		}
		if l.stands(path).Head != head {
			t.Error("the ended run has changed")
		}
	})
}

// An editor continues a run with no more money than its file or the server lets an editor set.
func TestAnEditorContinuesWithinTheBound(t *testing.T) {
	files := map[string]string{"two.yaml": "identity: {name: two}\nmodel_policy: {primary: {model: scripted/two.script.yaml}, budget: {usd_per_run: 2}}\n", "two.script.yaml": "- text: the end\n"}
	inGate(t, files, func(g gated) {
		path := g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "two", "input": "go"}`).Header().Get("Location")
		synctest.Wait()
		for _, c := range []struct {
			role, body string
			want       int
		}{
			{"viewer", `{"text": "more"}`, http.StatusForbidden}, {"editor", `{"text": "more"}`, http.StatusCreated}, {"editor", `{"text": "more", "budget": 3}`, http.StatusForbidden},
			{"editor", `{"text": "more", "budget": 1}`, http.StatusCreated}, {"admin", `{"text": "more", "budget": 3}`, http.StatusCreated},
		} {
			if w := g.as(g.given[c.role], http.MethodPost, path+"/continue", c.body); w.Code != c.want {
				t.Errorf("an %s sends %s: %d %s", c.role, c.body, w.Code, w.Body)
			}
		}
	})
}

func TestAForkGoesOnWithAMessageResultAndLimit(t *testing.T) {
	inBubble(t, doing, func(l local, _ string) {
		run, path := l.begin("does")
		l.until(path, journal.Ended)
		forked := func(body string) (string, journal.Run) {
			fork := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/fork", body)
			to := "/v1/runs/" + fork.ID
			l.until(to, journal.Ended)
			return to, fork
		}
		// The message comes behind the events that both share, and before the next answer.
		at := cycleEnds(l, path)[0]
		to, _ := forked(fmt.Sprintf(`{"seq": %d, "message": "leave it there", "limits": [{"setting": "max_tool_calls", "value": 7}]}`, at))
		var types []event.Type
		for _, e := range gets[struct{ Items []event.Event }](l, http.StatusOK, http.MethodGet, to+"/events?limit=500", "").Items[at:] {
			types = append(types, e.Type())
		}
		if want := []event.Type{event.TypeRunForked, event.TypeRunResumed, event.TypeBudgetRaised, event.TypeInputReceived}; !slices.Equal(types[:4], want) {
			t.Errorf("the fork begins with %v, want %v", types[:4], want)
		}
		if said := happened[event.InputReceived](l, to); len(said) != 1 || said[0].Text != "leave it there" || said[0].Principal != anyUser {
			t.Errorf("it was told %+v", said)
		}
		// A result names its event itself: the end of its cycle.
		to, fork := forked(`{"results": [{"callId": "` + run.ID + `-2-1", "output": "another content"}]}`)
		if fork.ForkSeq != cycleEnds(l, path)[1] {
			t.Errorf("it forks at %d, want %d", fork.ForkSeq, cycleEnds(l, path)[1])
		}
		if d := happened[event.RunForked](l, to)[0]; len(d.Results) != 1 || d.Results[0].Output != "another content" {
			t.Errorf("the fork has %+v", d)
		}
		before := len(gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, "/v1/runs", "").Items)
		l.refuses(http.StatusUnprocessableEntity, "bad-fork", http.MethodPost, path+"/fork", `{"results": [{"callId": "none", "output": "x"}]}`)
		l.refuses(http.StatusUnprocessableEntity, "bad-fork", http.MethodPost, path+"/fork", `{"seq": 3, "results": [{"callId": "`+run.ID+`-2-1", "output": "x"}]}`)
		if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/fork", `{"seq": 3, "limits": [{"setting": "none", "value": 1}]}`); p.Pointer != "/limits" {
			t.Errorf("an unknown limit: %+v", p)
		}
		if after := len(gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, "/v1/runs", "").Items); after != before {
			t.Errorf("refused forks left %d runs", after-before)
		}
	})
}

// The list has the effects that a fork does not undo, including those of runs below, in order.
func TestEffectsAfterAnEventAreListed(t *testing.T) {
	inBubble(t, doing, func(l local, dir string) {
		_, path := l.begin("does")
		l.until(path, journal.Ended)
		type left struct {
			Seq, Requested int64
			Items          []view.Effect
		}
		effects := func(path string, seq int64) left {
			return gets[left](l, http.StatusOK, http.MethodGet, fmt.Sprintf("%s/effects?seq=%d", path, seq), "")
		}
		names := func(l left) (names []string) {
			for _, f := range l.Items {
				names = append(names, fmt.Sprint(f.Kind, " ", f.Files, " ", f.State))
			}
			return names
		}
		first, second, third := "files [first.txt] done", "files [second.txt] done", "command [third.txt] done"
		ends := cycleEnds(l, path)
		for seq, want := range map[int64][]string{1: {first, second, third}, ends[0]: {second, third}, ends[1]: {third}, ends[2]: nil} {
			if diff := cmp.Diff(want, names(effects(path, seq))); diff != "" {
				t.Errorf("after %d (-want +got):\n%s", seq, diff)
			}
		}
		if got := effects(path, ends[1]-1); got.Seq != ends[0] && got.Seq >= ends[1]-1 || got.Requested != ends[1]-1 {
			t.Errorf("amid calls: %+v", got)
		}
		for _, seq := range []string{"0", "4711", "x", ""} {
			l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/effects?seq="+seq, "")
		}
		for _, name := range []string{"first.txt", "second.txt", "third.txt"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		_, path = l.begin("asks")
		l.until(path, journal.Ended)
		if diff := cmp.Diff([]string{first, second, third}, names(effects(path, 1))); diff != "" {
			t.Errorf("of a run below (-want +got):\n%s", diff)
		}
		if got := effects(path, cycleEnds(l, path)[0]); len(got.Items) > 0 {
			t.Errorf("after the run below has ended: %+v", got)
		}
	})
}

func TestForksAreListedAsAFamily(t *testing.T) {
	inBubble(t, doing, func(l local, _ string) {
		run, path := l.begin("does")
		l.until(path, journal.Ended)
		fork := func(of, body string) string {
			return gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs/"+of+"/fork", body).ID
		}
		first := fork(run.ID, `{"seq": 3, "run": false}`)
		second := fork(run.ID, `{"seq": 3, "run": false, "model": "scripted/other.script"}`)
		below := fork(first, `{"seq": 3, "run": false, "prompt": "Be brief."}`)
		for _, of := range []string{run.ID, first, second, below} {
			var got []string
			for _, m := range gets[struct {
				Items []struct {
					ID, ForkOf string
					Changed    []string
				}
			}](l, http.StatusOK, http.MethodGet, "/v1/runs/"+of+"/forks", "").Items {
				got = append(got, fmt.Sprint(m.ID, m.Changed))
			}
			slices.Sort(got)
			want := []string{run.ID + "[]", first + "[]", second + "[model]", below + "[prompt]"}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("of %s (-want +got):\n%s", of, diff)
			}
		}
	})
}

// A step is done again with what depends on it, also where nothing failed.
func TestAStepIsDoneAgainWithWhatDependsOnIt(t *testing.T) {
	files := map[string]string{
		"flow.yaml": "name: flow\nagents:\n  w: {description: Writes., model: scripted/ok.script.yaml, tools: []}\n" +
			"steps:\n- {id: one, agent: w}\n- {id: two, agent: w, dependsOn: [one]}\n- {id: three, agent: w, dependsOn: [two]}\n- {id: apart, agent: w, dependsOn: [one]}\n",
		"ok.script.yaml": "- text: done\n",
	}
	inBubble(t, files, func(l local, _ string) {
		run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"workflow": "flow"}`)
		path := "/v1/runs/" + run.ID
		l.until(path, journal.Ended)
		again := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/retry", `{"step": "two"}`)
		to := "/v1/runs/" + again.ID
		l.until(to, journal.Ended)
		if detail := l.stands(to).Detail; detail != string(event.ReasonFinalAnswer) {
			t.Errorf("it ended as %s", detail)
		}
		var steps []string
		for _, r := range gets[struct {
			Items []struct{ Step string }
		}](l, http.StatusOK, http.MethodGet, to+"/tree", "").Items {
			if r.Step != "" {
				steps = append(steps, r.Step)
			}
		}
		if want := []string{"two", "three"}; !slices.Equal(steps, want) {
			t.Errorf("the steps %v ran again, want %v", steps, want)
		}
		if p := l.refuses(http.StatusUnprocessableEntity, "bad-fork", http.MethodPost, path+"/retry", `{"step": "four"}`); !strings.Contains(p.Detail, "apart, one, three, two") {
			t.Errorf("an unknown step: %s", p.Detail)
		}
	})
}

// Readers of the stream of runs receive the removal of a run at once. Its logs are deleted.
func TestARemovalIsStreamedAndTakesLogsAlong(t *testing.T) {
	logs := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServerWith(t, memory.New(nil), doing, func(o *server.Options) {
			o.Launch.RemoveLogs = func(run string) error { return os.Remove(filepath.Join(logs, run+".log")) }
		})
		l := local{s, t}
		run, path := l.begin("does")
		l.until(path, journal.Ended)
		if err := os.WriteFile(filepath.Join(logs, run.ID+".log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		stop := l.watchRuns("")
		gets[struct{}](l, http.StatusOK, http.MethodPost, path+"/remove", "")
		want := change{"", "removed", `{"run":"` + run.ID + `","removed":true}`}
		if got := stop(); len(got) != 2 || got[1] != want {
			t.Errorf("the stream has %+v, want %+v", got, want)
		}
		if left, err := os.ReadDir(logs); err != nil || len(left) > 0 {
			t.Errorf("left are %v: %v", left, err)
		}
	})
}
