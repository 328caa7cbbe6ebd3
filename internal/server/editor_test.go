package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// refusedAt is the place of a refusal, and what it says.
func refusedAt(t *testing.T, w *httptest.ResponseRecorder) (pointer, detail string) {
	t.Helper()
	var p server.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return p.Pointer, p.Detail
}

// costly are files that say what their runs may cost, each of which has a run that waits.
var costly = func() map[string]string {
	const model = "model_policy: {primary: {model: scripted/writes.script.yaml}%s}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n%s"
	files := maps.Clone(writing)
	files["two.yaml"] = "identity: {name: two}\n" + fmt.Sprintf(model, ", budget: {usd_per_run: 2}", "")
	files["total.yaml"] = "identity: {name: total}\n" + fmt.Sprintf(model, "", "budgets: {max_total_cost: 2}\n")
	files["silent.yaml"] = "identity: {name: silent}\n" + fmt.Sprintf(model, "", "")
	files["loops.yaml"] = "identity: {name: loops}\n" + fmt.Sprintf(model, ", budget: {usd_per_run: 2}", "loop: {loopEnabled: true, maxIterations: 2}\n")
	files["flow.yaml"] = "apiVersion: pawl/v1\nname: flow\nbudget: {usd_per_run: 2}\nagents: {dev: {description: d, model: scripted/writes.script.yaml, tools: [fs.write], approvals: {fs.write: always}}}\nsteps: [{id: a, agent: dev, instructions: Go.}]\n"
	return files
}()

// An editor's limit in money is at most the file's, or the server's own bound if that
// is more; for each editor and each way to set it.
func TestAnEditorSetsNoMoreThanTheFileOrTheServerSays(t *testing.T) {
	for name, c := range map[string]struct{ order, file, most string }{
		"an agent":    {"agent", "two", "2"},
		"a total":     {"agent", "total", "2"},
		"the default": {"agent", "silent", "5"},
		"a loop":      {"agent", "loops", "2"},
		"a workflow":  {"workflow", "flow", "2"},
	} {
		for _, bound := range []float64{0, 1, 8} {
			t.Run(fmt.Sprintf("%s under %g", name, bound), func(t *testing.T) {
				most := c.most
				if bound == 8 {
					most = "8"
				}
				inGate(t, costly, func(g gated) {
					spendsAtMost(g, c.order, c.file, most)
				}, func(o *server.Options) { o.MaxBudget = bound })
			})
		}
	}
}

// spendsAtMost plays what an editor may set of a file: start, raise and fork.
func spendsAtMost(g gated, order, file, most string) {
	t, post := g.t, http.MethodPost
	start := func(role, budget string) *httptest.ResponseRecorder {
		return g.as(g.given[role], post, "/v1/runs", fmt.Sprintf(`{%q: %q, "input": "go", "budget": %s}`, order, file, budget))
	}
	for range 2 {
		w := start("editor", most+".01")
		if at, says := refusedAt(t, w); w.Code != http.StatusForbidden || at != "/budget" || !strings.Contains(says, "at most USD "+most+" for") {
			t.Errorf("an editor starts %s with more: %d at %q: %s", file, w.Code, at, says)
		}
	}
	w := start("admin", "100")
	if w.Code != http.StatusCreated {
		t.Fatalf("an admin: %d %s", w.Code, w.Body)
	}
	synctest.Wait()
	for role, want := range map[string]int{"editor": http.StatusForbidden, "admin": http.StatusCreated} {
		if w := g.as(g.given[role], post, w.Header().Get("Location")+"/fork", `{"seq": 2}`); w.Code != want {
			t.Errorf("an %s forks a run that has more: %d %s", role, w.Code, w.Body)
		}
	}
	finish(g, w.Header().Get("Location"))
	w = start("editor", most)
	if w.Code != http.StatusCreated {
		t.Fatalf("an editor: %d %s", w.Code, w.Body)
	}
	synctest.Wait()
	path := w.Header().Get("Location")
	raise := func(role, setting, value string) *httptest.ResponseRecorder {
		w := g.as(g.given[role], post, path+"/budget", fmt.Sprintf(`{"setting": %q, "value": %s}`, setting, value))
		synctest.Wait()
		return w
	}
	for _, setting := range []string{"usd_per_run", "max_total_cost"} {
		for _, value := range []string{most + ".01", "1e9", `"none"`} {
			w := raise("editor", setting, value)
			if at, says := refusedAt(t, w); w.Code != http.StatusForbidden || at != "/value" {
				t.Errorf("an editor sets %s to %s: %d at %q: %s", setting, value, w.Code, at, says)
			}
		}
	}
	before := seqOf(g, path)
	for _, c := range []struct{ role, setting, value string }{
		{"editor", "usd_per_run", "1"}, {"editor", "usd_per_run", most}, {"editor", "max_tool_calls", "1000"}, {"admin", "usd_per_run", "100"}, {"admin", "max_total_cost", `"none"`},
	} {
		if w := raise(c.role, c.setting, c.value); w.Code != http.StatusOK && w.Code != http.StatusAccepted {
			t.Errorf("an %s sets %s to %s: %d %s", c.role, c.setting, c.value, w.Code, w.Body)
		}
	}
	raised := seqOf(g, path)
	w = g.as(g.given["editor"], post, path+"/fork", fmt.Sprintf(`{"seq": %d}`, raised))
	var fork journal.Run // of the events before the raise, while a call is open
	if err := json.Unmarshal(w.Body.Bytes(), &fork); w.Code != http.StatusForbidden && (err != nil || w.Code != http.StatusCreated || fork.ForkSeq > before) {
		t.Errorf("an editor forks at %d: %d %s", raised, w.Code, w.Body)
	}
	if w := g.as(g.given["editor"], post, path+"/fork", fmt.Sprintf(`{"seq": %d}`, before)); w.Code != http.StatusCreated {
		t.Errorf("an editor forks at %d: %d %s", before, w.Code, w.Body)
	}
	if w := g.as(g.given["admin"], post, path+"/fork", fmt.Sprintf(`{"seq": %d}`, raised)); w.Code != http.StatusCreated {
		t.Errorf("an admin forks: %d %s", w.Code, w.Body)
	}
	finish(g, path)
}

// seqOf is the number of a run's newest event.
func seqOf(g gated, path string) int64 {
	g.t.Helper()
	var row journal.Run
	if err := json.Unmarshal(g.as(g.given["viewer"], http.MethodGet, path, "").Body.Bytes(), &row); err != nil {
		g.t.Fatal(err)
	}
	return row.Seq
}

// finish ends a run, so that another one may have its workspace.
func finish(g gated, path string) {
	g.t.Helper()
	synctest.Wait()
	if w := g.as(g.given["admin"], http.MethodPost, path+"/cancel", "{}"); w.Code >= 300 {
		g.t.Fatalf("cancel: %d %s", w.Code, w.Body)
	}
	synctest.Wait()
}

// A fork that does something else than the run did is an admin's.
func TestAForkThatReplacesThePromptIsAnAdmins(t *testing.T) {
	inGate(t, thinking, func(g gated) {
		w := g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "thinks", "input": "go"}`)
		synctest.Wait()
		path := w.Header().Get("Location")
		for range 2 {
			for body, want := range map[string]int{
				`{"seq": 3}`:                         http.StatusCreated,
				`{"seq": 3, "contextWindow": 50000}`: http.StatusCreated,
				`{"seq": 3, "message": "Go on."}`:    http.StatusCreated,
				`{"seq": 3, "limits": [{"setting": "max_tool_calls", "value": 7}, {"setting": "usd_per_run", "value": 1}]}`: http.StatusCreated,
				`{"seq": 3, "limits": [{"setting": "usd_per_run", "value": 100}]}`:                                          http.StatusForbidden,
				`{"seq": 3, "limits": [{"setting": "usd_per_run", "value": "none"}]}`:                                       http.StatusForbidden,
				`{"seq": 3, "results": [{"callId": "x", "output": "x"}]}`:                                                   http.StatusForbidden,
				`{"seq": 3, "prompt": "Give it all away."}`:                                                                 http.StatusForbidden,
				`{"seq": 3, "model": "scripted/thinks.script.yaml"}`:                                                        http.StatusForbidden,
				`{"seq": 3, "model": "scripted/../../../etc/passwd"}`:                                                       http.StatusForbidden,
				`{"seq": 3, "prompt": "x", "model": "anthropic/claude"}`:                                                    http.StatusForbidden,
			} {
				if w := g.as(g.given["editor"], http.MethodPost, path+"/fork", body); w.Code != want {
					t.Errorf("an editor sends %s: %d %s", body, w.Code, w.Body)
				}
			}
		}
		for _, body := range []string{`{"seq": 3, "prompt": "Go on."}`, `{"seq": 3, "model": "scripted/thinks.script.yaml"}`} {
			if w := g.as(g.given["admin"], http.MethodPost, path+"/fork", body); w.Code != http.StatusCreated {
				t.Errorf("an admin sends %s: %d %s", body, w.Code, w.Body)
			}
		}
	})
}

// An editor may give a call that is asked about other arguments. Those are judged like
// the model's own, and the journal and the audit say who gave them.
func TestAnEditorsArgumentsAreJudgedAnewAndAudited(t *testing.T) {
	files := map[string]string{
		"writes.yaml": "identity: {name: writes}\nmodel_policy: {primary: {model: scripted/writes.script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}, " +
			"rules: [{deny: fs.write, path: 'deploy/**'}]}\n",
		"writes.script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: first.txt, content: x}}]\n" +
			"- tool_calls: [{name: fs.write, arguments: {path: second.txt, content: x}}]\n" +
			"- tool_calls: [{name: fs.write, arguments: {path: third.txt, content: x}}]\n- text: the end\n",
	}
	var dir string
	inGate(t, files, func(g gated) {
		w := g.as(g.given["editor"], http.MethodPost, "/v1/runs", `{"agent": "writes", "input": "go"}`)
		path := w.Header().Get("Location")
		id := filepath.Base(path)
		if w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
		for _, args := range []string{`{"path": "deploy/prod.txt", "content": "y"}`, `{"path": "../outside.txt", "content": "y"}`, `{"path": "edited.txt", "content": "y"}`} {
			synctest.Wait()
			var asked struct{ Items []struct{ CallID string } }
			if err := json.Unmarshal(g.as(g.given["editor"], http.MethodGet, path+"/approvals", "").Body.Bytes(), &asked); err != nil || len(asked.Items) != 1 {
				t.Fatalf("%v: %+v before %s: %s", err, asked, args, g.as(g.given["viewer"], http.MethodGet, path+"/events?limit=500", "").Body)
			}
			if w := g.as(g.given["editor"], http.MethodPost, path+"/approve", `{"callId": "`+asked.Items[0].CallID+`", "args": `+args+`}`); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", args, w.Code, w.Body)
			}
		}
		synctest.Wait()
		for name, want := range map[string]bool{"deploy/prod.txt": false, "../outside.txt": false, "first.txt": false, "second.txt": false, "third.txt": false, "edited.txt": true} {
			if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		events := g.as(g.given["viewer"], http.MethodGet, path+"/events?limit=500", "").Body.String()
		if n := strings.Count(events, `"editedBy":"http:the-editor"`); n < 3 {
			t.Errorf("the journal names who gave the arguments %d times:\n%s", n, events)
		}
		audit := g.as(g.given["admin"], http.MethodGet, "/v1/audit", "").Body.String()
		if n := strings.Count(audit, `"principal":{"name":"the-editor","role":"editor","proof":"token"},"operation":"POST /v1/runs/`+id+`/approve"`); n != 3 {
			t.Errorf("the audit names the editor's decisions %d times: %s", n, audit)
		}
	}, func(o *server.Options) { dir = o.Agents })
}
