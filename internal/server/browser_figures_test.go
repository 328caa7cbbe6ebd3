package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// looking is the script of a model that looks for files in so many cycles, with so many
// calls in each, and which takes its time for each answer. The numbers of cycle and call are
// in each pattern.
func looking(cycles, calls int, pattern, delay string) string {
	var b strings.Builder
	for cycle := range cycles {
		fmt.Fprintf(&b, "- {%stext: I look., tool_calls: [", delay)
		for call := range calls {
			fmt.Fprintf(&b, `{name: fs.glob, arguments: {pattern: "%s%d-%d"}}, `, pattern, cycle, call)
		}
		b.WriteString("]}\n")
	}
	return b.String() + "- {text: That is all.}\n"
}

// longRuns are the files of runs that have many events, and of one that has them at a
// certain rate: four for each call.
func longRuns(floods int, every time.Duration) map[string]string {
	files := map[string]string{
		"items.yaml": "apiVersion: pawl/v1\nname: items\nagents: {w: {description: works, model: scripted/quick.script.yaml, tools: []}}\nsteps:\n" +
			"  - {id: each, loop: {forEach: [" + strings.Repeat("x, ", 10_000) + "], maxConcurrency: 1000, steps: [{id: work, agent: w, instructions: Go., condition: 'index % 500 == 0'}]}}\n",
	}
	for name, script := range map[string]string{
		"events800":    looking(80, 1, "*.", ""),
		"events12000":  looking(1200, 1, "*.", ""),
		"events100000": looking(105, 240, "*.", ""),
		"flood":        looking(floods, 100, "*.", fmt.Sprintf("delay: %s, ", every)),
	} {
		files[name+".script.yaml"] = script
		files[name+".yaml"] = "identity: {name: " + name + "}\nmodel_policy: {primary: {model: scripted/" + name + ".script.yaml}}\n" +
			"tools: {allow: [fs.glob]}\nbudgets: {max_tool_calls: none, max_model_turns: none}\n" +
			"iteration: {max_cycles: 20000, context_window: 100000000, termination_conditions: [{kind: text-includes, text: That is all.}]}\n"
	}
	return files
}

// The figures of the page are times, so they are measured where nothing else runs.
func TestFiguresOfThePage(t *testing.T) {
	if os.Getenv("PAWL_BENCH_PAGE") == "" {
		t.Skip("measured by make bench-page")
	}
	play := scriptOfPage(t, "figures.cjs")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	files := maps.Clone(shownFiles)
	maps.Copy(files, longRuns(50, 600*time.Millisecond))
	s, _ := newServer(t, files)
	open := httptest.NewServer(measured(s))
	t.Cleanup(open.Close)
	steps := http.NewServeMux()
	steps.HandleFunc("POST /cut", func(http.ResponseWriter, *http.Request) { open.CloseClientConnections() })
	control := httptest.NewServer(steps)
	t.Cleanup(control.Close)
	play.Args, play.Env, play.Stderr = append(play.Args, open.URL), append(play.Env, "PAWL_CONTROL="+control.URL), os.Stderr
	out, err := play.Output()
	t.Logf("%-62s %10s %12s", "figure", "target", "measured")
	for line := range strings.Lines(string(out)) {
		var f struct {
			Name, Unit string
			Target     *float64
			Measured   float64
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		target := "none"
		if f.Target != nil {
			target = fmt.Sprint(*f.Target)
		}
		t.Logf("%-62s %10s %12v %s", f.Name, target, f.Measured, f.Unit)
		if f.Target != nil && f.Measured > *f.Target*1.2 {
			t.Errorf("%s: %v %s, more than a fifth above %v", f.Name, f.Measured, f.Unit, *f.Target)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
