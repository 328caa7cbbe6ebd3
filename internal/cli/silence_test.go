package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
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

func TestASilentModelIsToldOncePerAttemptInAPipe(t *testing.T) {
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

func TestSilenceIsNotDrawnOverAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newPrinter(&out, screen{terminal: true, live: true, width: func() int { return 80 }})
		p.startSilence()
		p.ask(plain, "really? ")
		time.Sleep(time.Minute)
		synctest.Wait()
		p.stopSilence()
		if out.String() != "really? " {
			t.Errorf("%q", out.String())
		}
	})
}
