package server_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/golden"
	"github.com/pawlrun/pawl/internal/server/agui"
	"github.com/pawlrun/pawl/journal/sqlite"
)

var update = flag.Bool("update", false, "write the golden files")

// verifier holds a stream to the rules of AG-UI 1.0, as its reference client does.
type verifier struct {
	t *testing.T
	// begun says that there was a run, and active that one goes on.
	begun, active bool
	// open are the messages, thoughts, calls, steps and subagents that are open, closed the
	// subagents that are not, and owners whose each of them is.
	open   map[string]bool
	closed map[string]bool
	owners map[string]string
}

func verifying(t *testing.T) *verifier { return &verifier{t: t} }

// brackets are the types that open something and those that need it open, of which
// the last closes it.
var brackets = []struct {
	kind, opens string
	needs       []string
	id          func(*agui.Event) string
}{
	{"message", "TEXT_MESSAGE_START", []string{"TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"}, func(e *agui.Event) string { return e.MessageID }},
	{"thought", "REASONING_MESSAGE_START", []string{"REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"}, func(e *agui.Event) string { return e.MessageID }},
	{"span", "REASONING_START", []string{"REASONING_END"}, func(e *agui.Event) string { return e.MessageID }},
	{"call", "TOOL_CALL_START", []string{"TOOL_CALL_ARGS", "TOOL_CALL_END"}, func(e *agui.Event) string { return e.ToolCallID }},
	{"step", "STEP_STARTED", []string{"STEP_FINISHED"}, func(e *agui.Event) string { return e.SubagentRunID + " " + e.StepName }},
	{"subagent", "SUBAGENT_STARTED", []string{"SUBAGENT_ERROR", "SUBAGENT_FINISHED"}, func(e *agui.Event) string { return e.SubagentRunID }},
}

func (v *verifier) take(e *agui.Event) {
	v.t.Helper()
	bad := func(why string) {
		v.t.Helper()
		v.t.Errorf("%s: %+v", why, *e)
	}
	switch {
	case e.Type == "RUN_STARTED":
		if v.active || e.ThreadID == "" || e.RunID == "" {
			bad("a run begins in another, or without ids")
		}
		v.begun, v.active, v.open, v.closed, v.owners = true, true, map[string]bool{}, map[string]bool{}, map[string]string{}
		return
	case !v.active:
		bad("outside a run")
		return
	case e.Type == "RUN_ERROR":
		v.active = false
		if e.Message == "" {
			bad("an error says nothing")
		}
		return
	case e.Type == "RUN_FINISHED":
		v.active = false
		if len(v.open) > 0 {
			bad(fmt.Sprint("still open: ", v.open))
		}
		if e.Outcome.Type == "interrupt" && (len(e.Outcome.Interrupts) == 0 || e.Outcome.Interrupts[0].ID == "" || e.Outcome.Interrupts[0].Reason == "") {
			bad("an interrupt of nothing")
		}
		return
	}
	for _, b := range brackets {
		id := b.kind + " " + b.id(e)
		switch {
		case e.Type == b.opens:
			if v.open[id] || v.closed[id] {
				bad("opened twice")
			}
			if parent := e.ParentSubagentRunID; parent != "" && !v.open["subagent "+parent] {
				bad("below a subagent that is not there")
			}
			v.open[id], v.owners[id] = true, e.SubagentRunID
		case slices.Contains(b.needs, e.Type):
			if !v.open[id] || v.owners[id] != e.SubagentRunID {
				bad("not open, or another's")
			}
			if last := b.needs[len(b.needs)-1]; e.Type == last || b.kind == "subagent" {
				delete(v.open, id)
				v.closed[id] = b.kind != "step"
			}
		}
	}
	if e.SubagentRunID != "" && !v.open["subagent "+e.SubagentRunID] && !strings.HasPrefix(e.Type, "SUBAGENT_") {
		bad("of a subagent that is not open")
	}
}

// scene is a run, what is done to it while it is parked, and its agents.
type scene struct {
	files map[string]string
	agent string
	then  []string
}

func scenes() map[string]scene {
	answers := func(name, text string) string {
		return "identity: {name: " + name + ", description: it answers}\nmodel_policy: {primary: {model: scripted/" + text + "}}\n"
	}
	return map[string]scene{
		"run": {files: asking(), agent: "asks"},
		"team": {agent: "panel", files: map[string]string{
			"panel.yaml":    "identity: {name: panel}\ncomposite: {strategy: sequential, subagents: [{agent: optimist}, {agent: critic}]}\n",
			"optimist.yaml": answers("optimist", "yes"), "critic.yaml": answers("critic", "no"),
			"yes": "- text: Yes.\n", "no": "- text: No.\n",
		}},
		"interrupt": {agent: "writes", files: writing, then: []string{"approve"}},
		"cancelled": {agent: "writes", files: writing, then: []string{"cancel"}},
		"failure": {agent: "fails", files: map[string]string{
			"fails.yaml": answers("fails", "no"), "no": "- error: {status: 400, class: invalid, message: the provider says no}\n",
		}},
	}
}

// play runs a scene to its end and returns its path.
func (c scene) play(l local) string {
	run, path := l.begin(c.agent)
	for _, verb := range c.then {
		time.Sleep(time.Second)
		body := "{}"
		if verb == "approve" {
			body = `{"callId": "` + run.ID + `-1-1"}`
		}
		gets[any](l, http.StatusOK, http.MethodPost, path+"/"+verb, body)
	}
	time.Sleep(time.Minute)
	return path
}

// Runs, teams, interrupts and failures in the words of AG-UI, live and afterwards, from
// every place.
func TestAGUI(t *testing.T) {
	for name, c := range scenes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newServer(t, c.files)
				l := local{s, t}
				path := c.play(l) + "/events?format=ag-ui&tree=true"
				whole := l.streamed(path, "")
				v, ids := verifying(t), map[string]string{}
				var text strings.Builder
				for _, f := range whole {
					var e agui.Event
					if err := json.Unmarshal([]byte(f.data), &e); err != nil {
						t.Fatal(err)
					}
					v.take(&e)
					text.WriteString(named(f.data, ids) + "\n")
				}
				if v.active || !v.begun {
					t.Error("the stream ends in a run")
				}
				golden.File(t, filepath.Join("testdata", "agui", name+".jsonl"), text.String(), *update)
				for i, f := range whole {
					if f.id != "" {
						if rest := l.streamed(path, f.id); !slices.Equal(rest, whole[i+1:]) {
							t.Errorf("behind event %d there are %d and not %d", i, len(rest), len(whole)-i-1)
						}
					}
				}
			})
		})
	}
}

// named has names for what is another in each run: ids, digests and times.
func named(line string, ids map[string]string) string {
	line = regexp.MustCompile(`"timestamp":\d+,?`).ReplaceAllString(line, "")
	line = regexp.MustCompile(`"(digest|expiresAt)":"[^"]*"`).ReplaceAllString(line, `"$1":"…"`)
	return regexp.MustCompile(`\b[a-z][a-z0-9]{11}\b`).ReplaceAllStringFunc(line, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprint("run", len(ids)+1)
		}
		return ids[id]
	})
}

// Live text is sent once, and its message is open until the answer is complete.
func TestAGUIWithLiveText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t, asking())
		l := local{s, t}
		_, path := l.begin("asks")
		v, said, pieces := verifying(t), map[string]string{}, 0
		for _, f := range l.streamed(path+"/events?format=ag-ui&tree=true&deltas=true", "") {
			var e agui.Event
			if err := json.Unmarshal([]byte(f.data), &e); err != nil {
				t.Fatal(err)
			}
			v.take(&e)
			if e.Type == "TEXT_MESSAGE_CONTENT" {
				pieces++
				said[e.MessageID] += e.Delta.(string)
			}
		}
		var texts []string
		for _, text := range said {
			texts = append(texts, text)
		}
		slices.Sort(texts)
		if !slices.Equal(texts, []string{"all is written", "go", "it is written"}) || pieces != 3 {
			t.Errorf("%d pieces: %q", pieces, texts)
		}
	})
}

// The progress of a call of a child is that of the child's, and nothing follows the end.
func TestAGUIHasTheProgressOfCalls(t *testing.T) {
	tr := agui.New("root")
	add := func(run string, data event.Data) []agui.Event {
		e := &event.Event{Run: run, Data: data}
		if run != "root" {
			e.Parent = "root"
		}
		return slices.Clone(tr.Translate(e))
	}
	add("root", event.RunStarted{Name: "asks"})
	add("root", event.ChildStarted{Child: "below", Name: "helper"})
	for _, run := range []string{"root", "below"} {
		add(run, event.ToolCall{CallID: run + "-1-1", Tool: "docs.find"})
		for done := range 2 {
			got := add(run, event.ToolProgress{CallID: run + "-1-1", Attempt: 1, Done: float64(done), Total: 2, Message: "a part"})
			want := map[string]any{"toolCallId": run + "-1-1", "done": float64(done), "total": 2.0, "message": "a part"}
			if len(got) != 1 || got[0].Type != "CUSTOM" || got[0].Name != "pawl.tool_call.progress" || !reflect.DeepEqual(got[0].Value, want) || (got[0].SubagentRunID == "below") != (run == "below") {
				t.Errorf("the progress of %s is %+v", run, got)
			}
		}
	}
	add("root", event.RunCompleted{})
	if got := add("root", event.ToolProgress{CallID: "root-1-1"}); len(got) != 0 {
		t.Errorf("progress after the end is %+v", got)
	}
}

// Every run of an older version is sent in a sequence that obeys the rules.
func TestAGUIOfOldJournals(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "engine", "testdata", "journals", "*.db"))
	if err != nil || len(files) == 0 {
		t.Fatal("no journals", err)
	}
	for _, file := range files {
		copied := filepath.Join(t.TempDir(), "journal.db")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := sqlite.Open(t.Context(), copied, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		last, err := store.Tail(t.Context(), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		words, verifiers := map[string]*agui.Translator{}, map[string]*verifier{}
		for _, r := range last {
			e, err := event.Decode(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			if words[r.Root] == nil {
				words[r.Root], verifiers[r.Root] = agui.New(r.Root), verifying(t)
			}
			if e.Type() == "run.forked" {
				continue // its beginning is not in its tree
			}
			for _, said := range words[r.Root].Translate(e) {
				verifiers[r.Root].take(&said)
			}
		}
	}
}

// The golden streams pass the checks of the protocol's own client.
func TestAGUIByItsOwnClient(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("testdata", "agui", "check.cjs"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "check.cjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "@ag-ui/client@1.0.0")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("@ag-ui/client cannot be installed: %v\n%s", err, out)
	}
	streams, err := filepath.Abs(filepath.Join("testdata", "agui"))
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "check.cjs", streams)
	node.Dir = dir
	out, err := node.CombinedOutput()
	if err != nil || strings.Count(string(out), "ok ") != len(scenes()) {
		t.Errorf("%v\n%s", err, out)
	}
}
