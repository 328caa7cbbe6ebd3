package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

func TestAListFitsTheTerminal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	row := func(id, name, input string, cost *llm.Cost, s journal.Progress) summarized {
		return summarized{
			RunStatus: control.RunStatus{Run: journal.Run{ID: id, Name: name, Created: at, Progress: s}},
			Model:     "acme/quick", Input: input, Cost: cost,
		}
	}
	ended := row("k7x2abcdefgh", "mender", "Mend the tests\nof both", &llm.Cost{USD: 0.25, Priced: true}, journal.Progress{State: journal.Ended, Detail: "stuck", Cycles: 2})
	parked := row("k7x2abcdefgi", "", "", nil, journal.Progress{State: journal.Parked, Detail: "blocked_on_input", Cycles: 300})
	wide := row("k7x2abcdefgk", "日本", "直す直す直す直す直す直す直す", &llm.Cost{USD: 1, Priced: true}, journal.Progress{State: journal.Ended, Detail: "stuck", Cycles: 2})
	child := wide
	parked.Answered, child.Parent = true, "k7x2abcdefgh"
	for _, tt := range []struct {
		items []summarized
		width int
		want  []string
	}{
		{[]summarized{ended, parked, wide}, 0, []string{
			"k7x2abcdefgh  ended: stuck                                   USD 0.2500  2 cycles    mender  2026-01-02 03:04:05  acme/quick  Mend the tests",
			"k7x2abcdefgi  parked: blocked_on_input, answered; resume it  -           300 cycles          2026-01-02 03:04:05  acme/quick  ",
			"k7x2abcdefgk  ended: stuck                                   USD 1.0000  2 cycles    日本    2026-01-02 03:04:05  acme/quick  直す直す直す直す直す直す直す",
		}},
		{[]summarized{ended, parked}, 80, []string{
			"k7x2abcdefgh  ended: stuck  USD 0.2500  2 cycles  mender",
			"  2026-01-02 03:04:05  acme/quick  Mend the tests",
			"k7x2abcdefgi  parked: blocked_on_input, answered; resume it  -  300 cycles  ",
			"  2026-01-02 03:04:05  acme/quick  ",
		}},
		{[]summarized{ended}, 107, []string{"k7x2abcdefgh  ended: stuck  USD 0.2500  2 cycles  mender  2026-01-02 03:04:05  acme/quick  Mend the tests"}},
		{[]summarized{ended}, 106, []string{"k7x2abcdefgh  ended: stuck  USD 0.2500  2 cycles  mender", "  2026-01-02 03:04:05  acme/quick  Mend the tests"}},
		{[]summarized{wide}, 105, []string{"k7x2abcdefgk  ended: stuck  USD 1.0000  2 cycles  日本  2026-01-02 03:04:05  acme/quick  直す直す直す直…"}},
		{[]summarized{wide}, 40, []string{"k7x2abcdefgk  ended: stuck  USD 1.0000 …", "  2026-01-02 03:04:05  acme/quick  直す…"}},
		{[]summarized{child}, 80, []string{
			"k7x2abcdefgk  ended: stuck  USD 1.0000  2 cycles  日本  (started by k7x2abcdefg…",
			"  2026-01-02 03:04:05  acme/quick  直す直す直す直す直す直す直す",
		}},
	} {
		got := strings.Split(strings.Join(listLines(tt.items, tt.width), "\n"), "\n")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", tt.width, diff)
		}
	}
}

func TestAListAtATerminalIsAsWideAsThat(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: " + strings.Repeat("long", 15) + "}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n",
		"script.yaml": "- text: the end\n",
	})
	p.exits(0, "run", "agent.yaml", "go")
	y, s := p.atTerminal(nil, "runs")
	s.wait()
	<-y.done
	for line := range strings.SplitSeq(y.plain(), "\r\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if f := p.exits(0, "runs"); !strings.Contains(f.out, strings.Repeat("long", 15)+"  ") {
		t.Errorf("where no terminal is, the name is cut: %s", f.out)
	}
}

// What a run cost is listed while it goes, too, and a fork's model is its own.
func TestAListHasTheInputTheModelAndTheCost(t *testing.T) {
	priced := "usage: {input: 1000, output: 10}"
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: lister}\nmodel_policy: {primary: {model: scripted/script.yaml}}\n",
		"config.yaml": "models: {scripted/script.yaml: {price: {input: 100, output: 100}}, scripted/other.yaml: {price: {input: 1, output: 1}}}\n",
		"script.yaml": "- {tool_calls: [{name: shell.exec, arguments: {command: \"touch x\"}}], " + priced + "}\n",
		"other.yaml":  "- {text: the end, " + priced + "}\n",
	})
	items := func() map[string]summarized {
		var page struct{ Items []summarized }
		if err := json.Unmarshal([]byte(p.exits(0, "runs", "--json").out), &page); err != nil {
			t.Fatal(err)
		}
		byID := map[string]summarized{}
		for _, r := range page.Items {
			byID[r.ID] = r
		}
		return byID
	}
	p.exits(4, "run", "agent.yaml", "List it", "--config", "config.yaml")
	parked := p.newest()
	p.exits(0, "runs", "fork", parked, "--seq", "1", "--model", "scripted/other.yaml", "--config", "config.yaml")
	fork := p.newest()
	for id, want := range map[string]struct {
		model string
		usd   float64
	}{parked: {"scripted/script.yaml", 0.101}, fork: {"scripted/other.yaml", 0.00101}} {
		r := items()[id]
		if r.Input != "List it" || r.Model != want.model || r.Cost == nil || r.Cost.USD != want.usd {
			t.Errorf("%s is listed with input %q, model %q, cost %+v; want %+v", id, r.Input, r.Model, r.Cost, want)
		}
	}
	if out := p.exits(0, "runs").out; !strings.Contains(out, "  USD 0.1010  ") || !strings.Contains(out, "  scripted/other.yaml   List it\n") {
		t.Errorf("the list is %s", out)
	}
}
