package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// flowing is a workflow of two steps, whose agents are in the file.
var flowing = map[string]string{
	"flow.yaml": "name: flow\ndescription: Two steps.\nagents:\n  worker: {description: Works., prompt: Work., model: scripted/worker.script.yaml}\n" +
		"steps:\n  - {id: one, agent: worker, instructions: First.}\n  - {id: two, agent: worker, instructions: Second., dependsOn: [one]}\n",
	"worker.script.yaml": "- text: done\n",
}

// listed is a file of a list.
type listed struct {
	Name, Kind, Version, File, Problem string
	Older                              []string
}

func TestAWorkflowIsListedStartedAndShownAsATree(t *testing.T) {
	files := map[string]string{"torn.yaml": "steps:\n\t- {id: one}\n", "wrong.yaml": "name: wrong\nsteps: [{id: one, agent: nobody, instructions: x}]\n", "notes.yaml": "- bread\n"}
	maps.Copy(files, flowing)
	maps.Copy(files, thinking)
	files["team.yaml"] = "identity: {name: team}\nmodel_policy: {primary: {model: scripted/worker.script.yaml}}\ncomposite: {strategy: sequential, subagents: [{agent: thinks}]}\n"
	files["loop.yaml"] = "identity: {name: loop}\nmodel_policy: {primary: {model: scripted/worker.script.yaml}}\nloop: {loopEnabled: true, maxIterations: 2, loopCriteria: {type: max_iterations}}\n"
	files["goal.yaml"] = "kind: Goal\nname: goal\n"
	inBubble(t, files, func(l local, _ string) {
		agents := map[string]string{}
		for _, f := range pages[listed](l, "/v1/agents", 2) {
			agents[f.Name] = f.Kind
		}
		if diff := cmp.Diff(map[string]string{"thinks": "Agent", "team": "Team", "loop": "Loop", "torn": ""}, agents); diff != "" {
			t.Errorf("agents (-want +got):\n%s", diff)
		}
		loop := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "loop", "input": "go"}`)
		if ended := l.stands("/v1/runs/" + loop.ID); ended.Kind != "Loop" || ended.State != journal.Ended {
			t.Errorf("the loop is %+v", ended)
		}
		var names []string
		for _, f := range pages[listed](l, "/v1/workflows", 1) {
			names = append(names, f.Name)
			if (f.Problem == "") != (f.Name == "flow") {
				t.Errorf("%+v", f)
			}
		}
		if diff := cmp.Diff([]string{"flow", "goal", "torn", "wrong"}, names); diff != "" {
			t.Errorf("workflows (-want +got):\n%s", diff)
		}
		run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"workflow": "flow", "input": "go"}`)
		path := "/v1/runs/" + run.ID
		if ended := l.stands(path); ended.State != journal.Ended || ended.Kind != "Workflow" {
			t.Errorf("it is %+v", ended)
		}
		for _, limit := range []int{1, 2, 50} {
			var steps []string
			for _, r := range pages[struct{ ID, Parent, Step string }](l, path+"/tree", limit) {
				steps = append(steps, r.Step)
				if (r.ID == run.ID) != (r.Parent == "") {
					t.Errorf("%+v", r)
				}
			}
			if diff := cmp.Diff([]string{"", "one", "two"}, steps); diff != "" {
				t.Errorf("%d a page (-want +got):\n%s", limit, diff)
			}
		}
		_, other := l.begin("thinks")
		l.refuses(http.StatusBadRequest, "bad-query", http.MethodGet, path+"/tree?cursor=tree-"+run.ID+":"+strings.TrimPrefix(other, "/v1/runs/"), "")
		for body, pointer := range map[string]string{
			`{"workflow": "thinks", "input": "go"}`: "/workflow", `{"agent": "flow", "input": "go"}`: "/agent",
		} {
			if p := l.refuses(http.StatusUnprocessableEntity, "bad-agent", http.MethodPost, "/v1/runs", body); p.Pointer != pointer {
				t.Errorf("%s: the place is %q", body, p.Pointer)
			}
		}
		if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, "/v1/runs", `{"agent": "thinks", "workflow": "flow"}`); p.Pointer != "/workflow" {
			t.Errorf("both: the place is %q", p.Pointer)
		}
	})
}

// An unchanged file is not read: with its first times, an agent is found by its old
// name.
func TestAFileIsReadAgainWhenItHasChangedAndItsVersionsAreKept(t *testing.T) {
	text := func(name, version string) string {
		return "identity: {name: " + name + ", version: " + version + "}\nmodel_policy: {primary: {model: scripted/s.script.yaml}}\n"
	}
	inBubble(t, map[string]string{"a.yaml": text("old", "1.0.0"), "s.script.yaml": "- text: the end\n"}, func(l local, dir string) {
		file, long := filepath.Join(dir, "a.yaml"), time.Now().Add(-time.Hour)
		write := func(text string, at time.Time) listed {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
			all := pages[listed](l, "/v1/agents", 50)
			if len(all) != 1 {
				t.Fatalf("%+v", all)
			}
			return all[0]
		}
		write(text("old", "1.0.0"), long)
		if got := write(text("new", "1.0.0"), long); got.Name != "old" {
			t.Errorf("a file whose time has not changed is read again: %+v", got)
		}
		if got := write(text("new", "2.0.0"), long.Add(time.Minute)); got.Name != "new" || got.Version != "2.0.0" {
			t.Errorf("a changed file is %+v", got)
		}
		got := write(text("new", "3.0.0"), long.Add(2*time.Minute))
		if diff := cmp.Diff([]string{"2.0.0"}, got.Older); diff != "" || got.Version != "3.0.0" {
			t.Errorf("older versions of %+v (-want +got):\n%s", got, diff)
		}
		for version, status := range map[string]int{"new@2.0.0": 201, "new@3.0.0": 201, "new": 201, "new@4.0.0": 422, "old": 422} {
			body := `{"agent": "` + version + `", "input": "go"}`
			run := gets[struct{ ID string }](l, status, http.MethodPost, "/v1/runs", body)
			if status != 201 {
				continue
			}
			started := happened[event.RunStarted](l, "/v1/runs/"+run.ID)
			want := strings.TrimPrefix(strings.TrimPrefix(version, "new"), "@")
			if want == "" {
				want = "3.0.0"
			}
			if len(started) != 1 || !strings.Contains(started[0].Spec, want) {
				t.Errorf("%s starts %+v", version, started)
			}
		}
	})
}

func TestEveryQuestionIsListedPerRunPerTreeAndOverAll(t *testing.T) {
	files := maps.Clone(writing)
	files["asks.yaml"] = "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/asks.script.yaml}}\ntools: {allow: [], agents: [{name: helper, description: Helps., file: writes.yaml}]}\n"
	files["asks.script.yaml"] = "- tool_calls: [{name: helper, arguments: {task: write}}]\n- text: the end\n"
	inBubble(t, files, func(l local, _ string) {
		run, path := l.begin("asks")
		l.stands(path)
		type question struct {
			ID, Kind, Run, Digest string
			Path                  []string
		}
		over := pages[question](l, "/v1/questions", 50)
		own := gets[struct{ Items []question }](l, http.StatusOK, http.MethodGet, path+"/questions", "").Items
		tree := gets[struct{ Items []question }](l, http.StatusOK, http.MethodGet, path+"/questions?tree=true", "").Items
		if len(over) != 1 || len(tree) != 1 || len(own) != 0 {
			t.Fatalf("over all %+v, per tree %+v, per run %+v", over, tree, own)
		}
		if diff := cmp.Diff(over, tree); diff != "" {
			t.Errorf("they are not the same (-over all +per tree):\n%s", diff)
		}
		if q := over[0]; q.Kind != "call" || q.Digest == "" || len(q.Path) != 2 || q.Path[0] != run.ID || q.Path[1] != q.Run {
			t.Errorf("the question is %+v", q)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/approve", `{"callId": "`+over[0].ID+`"}`)
		synctest.Wait()
		if left := pages[question](l, "/v1/questions", 50); len(left) > 0 {
			t.Errorf("after the decision: %+v", left)
		}
	})
}

func TestAForkSharesEventsAndStandsUntilItIsResumed(t *testing.T) {
	inBubble(t, thinking, func(l local, _ string) {
		run, path := l.begin("thinks")
		time.Sleep(time.Minute)
		whole := l.stands(path)
		fork := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/fork", `{"seq": 3, "run": false}`)
		if fork.ForkOf != run.ID || fork.ForkSeq == 0 || fork.State != journal.Queued {
			t.Errorf("the fork is %+v", fork)
		}
		gets[journal.Run](l, http.StatusOK, http.MethodPost, "/v1/runs/"+fork.ID+"/resume", "")
		time.Sleep(time.Minute)
		if ended := l.stands("/v1/runs/" + fork.ID); ended.State != journal.Ended {
			t.Errorf("resumed it is %+v", ended)
		}
		if again := l.stands(path); again.Head != whole.Head {
			t.Error("the run itself has changed")
		}
		for body, pointer := range map[string]string{`{}`: "/seq", `{"seq": 0}`: "/seq", `{"seq": "1"}`: "/seq"} {
			if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/fork", body); p.Pointer != pointer {
				t.Errorf("%s: the place is %q", body, p.Pointer)
			}
		}
		for _, body := range []string{`{"seq": 4711}`, `{"seq": -1}`, `{"seq": 3, "model": "scripted/../x.yaml"}`, `{"seq": 3, "model": "none/x"}`} {
			l.refuses(http.StatusUnprocessableEntity, "bad-fork", http.MethodPost, path+"/fork", body)
		}
	})
}

func TestARetryDoesTheFailedStepsOfAWorkflowAgain(t *testing.T) {
	const twoSteps = "name: %s\nagents:\n  first: {description: Writes., model: scripted/ok.script.yaml, tools: []}\n  second: {description: Writes., model: scripted/%s.script.yaml, tools: []}\n" +
		"steps:\n- {id: one, agent: first}\n- {id: two, agent: second, dependsOn: [one]}\n"
	files := map[string]string{
		"fails.yaml": fmt.Sprintf(twoSteps, "fails", "bad"), "works.yaml": fmt.Sprintf(twoSteps, "works", "ok"),
		"ok.script.yaml": "- text: One.\n", "bad.script.yaml": "- error: {class: auth, status: 401}\n",
	}
	inBubble(t, files, func(l local, dir string) {
		begin := func(name string) (journal.Run, string) {
			run := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs", `{"workflow": "`+name+`"}`)
			return run, "/v1/runs/" + run.ID
		}
		run, path := begin("fails")
		if ended := l.stands(path); ended.Detail != string(event.ReasonStepFailed) {
			t.Fatalf("it is %s: %s", ended.State, ended.Detail)
		}
		stays := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/retry", `{"run": false}`)
		if stays.ForkOf != run.ID || stays.State != journal.Queued {
			t.Errorf("a retry that is not run is %+v", stays)
		}
		failed := gets[journal.Run](l, http.StatusCreated, http.MethodPost, path+"/retry", "")
		synctest.Wait()
		if ended := l.stands("/v1/runs/" + failed.ID); ended.Detail != string(event.ReasonStepFailed) {
			t.Fatalf("what still fails is %s: %s", ended.State, ended.Detail)
		}
		if err := os.WriteFile(filepath.Join(dir, "bad.script.yaml"), []byte("- text: Two.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		again := gets[journal.Run](l, http.StatusCreated, http.MethodPost, "/v1/runs/"+failed.ID+"/retry", "{}")
		synctest.Wait()
		if ended := l.stands("/v1/runs/" + again.ID); ended.Detail != string(event.ReasonFinalAnswer) || again.ForkOf == "" {
			t.Errorf("the retry of the retry is %+v", ended)
		}
		if rows := gets[struct{ Items []journal.Run }](l, http.StatusOK, http.MethodGet, "/v1/runs/"+again.ID+"/tree", "").Items; len(rows) != 2 {
			t.Errorf("the step that completed was run again: %+v", rows)
		}
		_, works := begin("works")
		synctest.Wait()
		l.refuses(http.StatusUnprocessableEntity, "bad-fork", http.MethodPost, works+"/retry", "")
		l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/retry", `{"seq": 3}`)
	})
}

func TestARaisedLimitTakesARunOnThatParkedAtIt(t *testing.T) {
	files := map[string]string{
		"calls.yaml":        "identity: {name: calls}\nmodel_policy: {primary: {model: scripted/calls.script.yaml}}\ntools: {allow: [fs.list]}\nbudgets: {max_tool_calls: 1, actions: {max_tool_calls: ask}}\n",
		"calls.script.yaml": strings.Repeat("- tool_calls: [{name: fs.list, arguments: {path: .}}]\n", 2) + "- text: the end\n",
	}
	inBubble(t, files, func(l local, _ string) {
		_, path := l.begin("calls")
		if run := l.stands(path); run.State != journal.Parked {
			t.Fatalf("it is %s: %s", run.State, run.Detail)
		}
		for body, pointer := range map[string]string{
			`{}`: "/setting", `{"setting": "max_turns", "value": 1}`: "/setting", `{"setting": "max_tool_calls", "value": -1}`: "/value",
			`{"setting": "max_tool_calls", "value": "many"}`: "/value", `{"setting": "max_tool_calls"}`: "/value",
		} {
			if p := l.refuses(http.StatusBadRequest, "bad-body", http.MethodPost, path+"/budget", body); p.Pointer != pointer {
				t.Errorf("%s: the place is %q", body, p.Pointer)
			}
		}
		if p := l.refuses(http.StatusUnprocessableEntity, "bad-limit", http.MethodPost, path+"/budget", `{"setting": "max_tool_calls", "value": 1}`); !strings.Contains(p.Detail, "at least 2") {
			t.Errorf("%+v", p)
		}
		gets[reply](l, http.StatusOK, http.MethodPost, path+"/budget", `{"setting": "max_tool_calls", "value": "none"}`)
		if run := l.stands(path); run.State != journal.Ended {
			t.Errorf("it is %s: %s", run.State, run.Detail)
		}
		raised := happened[event.BudgetRaised](l, path)
		if len(raised) != 1 || raised[0].Principal != anyUser {
			t.Errorf("the journal says %+v", raised)
		}
	})
}
