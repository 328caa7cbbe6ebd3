package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/llm"
)

// silent plays two attempts, the first of which says a word after 20 s and then nothing
// for 40 s, and the second nothing for 31 s.
func silent(t *testing.T, s screen) string {
	t.Helper()
	var out bytes.Buffer
	p := newPrinter(&out, s)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	for _, step := range []struct {
		data event.Data
		wait time.Duration
	}{
		{event.ModelRequested{Attempt: 1}, 20 * time.Second},
		{event.Text{Text: "one"}, 40*time.Second + time.Millisecond},
		{event.ModelAttemptFailed{Attempt: 1, Model: "a/b"}, time.Hour},
		{event.ModelRequested{Attempt: 2}, 31*time.Second + time.Millisecond},
		{event.ModelResponse{}, time.Hour},
		{event.ModelRequested{Attempt: 1, Purpose: event.PurposeSummary}, time.Hour},
	} {
		if err := v.show(event.Event{Data: step.data}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(step.wait)
		synctest.Wait()
	}
	if err := v.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSilentModelIsReportedOncePerAttemptInPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := silent(t, screen{width: func() int { return 80 }}); strings.Count(got, "no data for 30 s\n") != 2 || strings.Count(got, "no data") != 2 {
			t.Errorf("it reads %q", got)
		}
	})
}

func TestTheTerminalCountsHowLongAModelSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := silent(t, screen{terminal: true, live: true, width: func() int { return 80 }, height: func() int { return 24 }})
		for text, want := range map[string]int{"no data for 29 s": 0, "no data for 30 s": 2, "no data for 31 s": 2, "no data for 40 s": 1, "no data for 41 s": 0} {
			if n := strings.Count(got, text); n != want {
				t.Errorf("%q stands there %d times, want %d: %q", text, n, want, got)
			}
		}
		if tail := got[strings.LastIndex(got, "no data"):]; !strings.Contains(tail, "\x1b[") {
			t.Errorf("the line stays: %q", tail)
		}
	})
}

// Two steps of a workflow: the first says nothing for 31 s, then answers; the second says
// a word meanwhile and then nothing for 40 s, twice.
func silentSteps(t *testing.T, s screen) string {
	t.Helper()
	var out bytes.Buffer
	p := newPrinter(&out, s)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	agent := &plan.Agent{Name: "writer"}
	for _, step := range []struct {
		run  string
		data event.Data
		wait time.Duration
	}{
		{"r", begun(t, plan.Plan{Steps: []plan.Step{{ID: "one", Agent: agent}, {ID: "two", Agent: agent}}}), 0},
		{"r", event.ChildStarted{Child: "c1", Name: "writer", Step: "one", ID: "one"}, 0},
		{"r", event.ChildStarted{Child: "c2", Name: "writer", Step: "two", ID: "two"}, 0},
		{"c1", event.ModelRequested{Attempt: 1}, 0},
		{"c2", event.ModelRequested{Attempt: 1}, 20 * time.Second},
		{"c2", event.Text{Text: "Compare"}, 11*time.Second + time.Millisecond},
		{"c1", paid("", 0), 30 * time.Second},
		{"c2", event.ModelAttemptFailed{Attempt: 1, Model: "a/b", Cost: llm.Cost{Priced: true}}, time.Minute},
		{"c2", event.ModelRequested{Attempt: 2}, 40*time.Second + time.Millisecond},
		{"c2", paid("", 0), time.Minute},
	} {
		if err := v.show(event.Event{Run: step.run, Time: time.Now(), Data: step.data}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(step.wait)
		synctest.Wait()
	}
	if err := v.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheSilenceOfEachStepIsShownUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := silentSteps(t, screen{width: func() int { return 80 }})
		if strings.Count(got, "  one no data for 30 s\n") != 1 || strings.Count(got, "  two no data for 30 s\n") != 2 || strings.Count(got, "no data") != 3 {
			t.Errorf("it reads %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		got := silentSteps(t, screen{terminal: true, live: true, width: func() int { return 80 }, height: func() int { return 24 }})
		for line, want := range map[string]bool{
			"▸ one  running  31s  no data for 31 s  waiting for the model": true,
			"▸ two  running  51s  no data for 31 s  Compare":               true,
			"no data for 40 s  waiting for the model":                      true,
			"▸ one  running  32s  no data":                                 false,
			"no data for 29 s":                                             false,
			"no data for 42 s":                                             false,
		} {
			if strings.Contains(got, line) != want {
				t.Errorf("%q stands there: %v, want %v:\n%s", line, !want, want, strings.ReplaceAll(got, "\x1b", "\n"))
			}
		}
		if tail := got[strings.LastIndex(got, "no data"):]; !strings.Contains(tail, "▸ two") {
			t.Errorf("the message stays: %q", tail)
		}
	})
}

func TestSilenceIsNotDrawnOverAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newPrinter(&out, screen{terminal: true, live: true, width: func() int { return 80 }})
		var s silence
		p.startSilence(&s, "")
		p.ask(plain, "really? ")
		time.Sleep(time.Minute)
		synctest.Wait()
		p.stopSilence(&s)
		if out.String() != "really? " {
			t.Errorf("%q", out.String())
		}
	})
}
