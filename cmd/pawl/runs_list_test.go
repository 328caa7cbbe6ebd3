package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/control"
	"github.com/pawlrun/pawl/journal"
)

func TestAListFitsTheTerminal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	row := func(id, name string, s journal.Status) control.Standing {
		return control.Standing{Run: journal.Run{ID: id, Name: name, Created: at, Status: s}}
	}
	ended := row("k7x2abcdefgh", "mends the tests", journal.Status{State: journal.Ended, Detail: "stuck", Cycles: 2})
	parked := row("k7x2abcdefgi", "", journal.Status{State: journal.Parked, Detail: "blocked_on_input", Cycles: 300})
	child := row("k7x2abcdefgj", "pays", journal.Status{State: journal.Ended, Detail: "stuck", Cycles: 1})
	wide := row("k7x2abcdefgk", "日本語で直す", journal.Status{State: journal.Ended, Detail: "stuck", Cycles: 2})
	parked.Answered, child.Parent = true, "k7x2abcdefgh"
	for _, tt := range []struct {
		items []control.Standing
		width int
		want  []string
	}{
		{[]control.Standing{ended, parked}, 0, []string{
			"k7x2abcdefgh  ended: stuck                                   2 cycles    2026-01-02 03:04:05  mends the tests",
			"k7x2abcdefgi  parked: blocked_on_input, answered; resume it  300 cycles  2026-01-02 03:04:05  ",
		}},
		{[]control.Standing{ended, parked}, 80, []string{
			"k7x2abcdefgh  ended: stuck", "  2 cycles  2026-01-02 03:04:05  mends the tests",
			"k7x2abcdefgi  parked: blocked_on_input, answered; resume it", "  300 cycles  2026-01-02 03:04:05  ",
		}},
		{[]control.Standing{ended}, 74, []string{"k7x2abcdefgh  ended: stuck  2 cycles  2026-01-02 03:04:05  mends the tests"}},
		{[]control.Standing{ended}, 71, []string{"k7x2abcdefgh  ended: stuck  2 cycles  2026-01-02 03:04:05  mends the t…"}},
		{[]control.Standing{ended}, 70, []string{"k7x2abcdefgh  ended: stuck", "  2 cycles  2026-01-02 03:04:05  mends the tests"}},
		{[]control.Standing{ended}, 40, []string{"k7x2abcdefgh  ended: stuck", "  2 cycles  2026-01-02 03:04:05  mends …"}},
		{[]control.Standing{wide}, 40, []string{"k7x2abcdefgk  ended: stuck", "  2 cycles  2026-01-02 03:04:05  日本語…"}},
		{[]control.Standing{child}, 80, []string{
			"k7x2abcdefgj  ended: stuck", "  1 cycle  2026-01-02 03:04:05  pays  (started by k7x2abcdefgh)",
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
	if f := p.exits(0, "runs"); !strings.Contains(f.out, strings.Repeat("long", 15)+"\n") {
		t.Errorf("where no terminal is, the name is cut: %s", f.out)
	}
}
