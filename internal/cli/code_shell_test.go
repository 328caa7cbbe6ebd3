package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
)

// A person runs commands beside a session: they are asked about, journalled, and no part of
// its conversation.
func TestCommandsOfTheUserGoThroughPolicy(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": gatedAgent, "script.yaml": "- text: the answer\n"})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("hello\r")
	p.eventually("it answers", func() bool { return strings.Contains(y.text(), "the answer") })
	session := p.newest()
	for i, key := range []string{"y", "r\r"} {
		before := p.newest()
		y.types(fmt.Sprintf("!seq 3; touch touched%d\r", i))
		p.answers(y, key, func() bool {
			newest := p.newest()
			return newest != before && p.row(newest).State == journal.Ended
		})
	}
	p.eventually("the rejection is shown", func() bool {
		return strings.Count(y.text(), "→ shell.exec") >= 2 || strings.Contains(y.text(), "rejected")
	})
	for _, line := range []string{"\r  1\r\n", "\r  2\r\n", "\r  3\r\n"} {
		if shown := y.text(); !strings.Contains(shown, line) {
			t.Errorf("the output %q is not shown: %q", line, shown)
		}
	}
	if !p.exists("touched0")() || p.exists("touched1")() {
		t.Error("the approved command has not run, or the rejected one has")
	}
	command := p.newest()
	y.types("more\r")
	p.eventually("the session goes on", func() bool {
		newest := p.newest()
		return newest != command && p.row(newest).State == journal.Ended
	})
	if started, _ := p.started(p.newest()); started.From == nil || started.From.Run != session {
		t.Errorf("the message after the commands continues %+v, want run %s", started.From, session)
	}
	y.types("\x04")
	s.wait()
	if got := p.exits(exitUsage, "code", "--resume"); strings.Count(got.out, "\n") != 1 || !strings.Contains(got.out, "  2 runs  hello") {
		t.Errorf("the sessions are %q", got.out)
	}
}

func TestACompactionIsMadeOnceItIsAskedFor(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  slowly + "tools: {allow: [fs.read]}\ncompact: {strategy: rolling-window, keep: {turns: 1}}\n",
		"script.yaml": "- tool_calls: [{name: fs.read, arguments: {path: long.txt}}]\n- text: the answer\n", "long.txt": strings.Repeat("many words\n", 200),
	})
	y, s := p.inRegion("--agent", "agent.yaml")
	y.types("/compact\r")
	p.eventually("it says that there is nothing", func() bool { return strings.Contains(y.text(), "the session has no run yet") })
	newest := ""
	for i := range 5 {
		if i == 3 {
			y.types("/compact\r")
			p.eventually("it says when", func() bool { return strings.Contains(y.text(), "before the next message is answered") })
		}
		y.types(fmt.Sprintf("message %d\r", i))
		p.eventually("it answers", func() bool {
			if !strings.Contains(y.text(), "the answer") {
				return false
			}
			run := p.newest()
			if run == newest || run == "" || p.row(run).State != journal.Ended {
				return false
			}
			newest = run
			return true
		})
		var triggers []event.CompressTrigger
		for _, e := range p.events(p.exits(0, "runs", "events", newest).out) {
			if d, is := e.Data.(event.HistoryCompressed); is {
				triggers = append(triggers, d.Trigger)
			}
		}
		if made := len(triggers) == 1 && triggers[0] == event.CompressRequested; made != (i == 3) || !made && len(triggers) > 0 {
			t.Errorf("message %d has the compactions %v", i, triggers)
		}
	}
	y.types("\x04")
	s.wait()
}
