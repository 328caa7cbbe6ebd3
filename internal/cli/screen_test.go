package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/view"
)

// aTerminal is a screen as wide as told, with a clock that stands still.
func aTerminal(width int) (*printer, *bytes.Buffer, *time.Time) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	p := newPrinter(&out, screen{terminal: true, live: true, width: func() int { return width }, height: func() int { return 24 }})
	p.now = func() time.Time { return now }
	return p, &out, &now
}

func TestTheLiveLineStaysBelowTheLinesThatStay(t *testing.T) {
	p, out, now := aTerminal(40)
	p.live("waiting")
	p.line(plain, "cycle 1")
	*now = now.Add(time.Second)
	p.live("still waiting")
	p.live("")
	want := "waiting" + "\r\x1b[K" + "cycle 1\n" + "waiting" + "\r\x1b[K" + "still waiting" + "\r\x1b[K"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestTheLiveLineIsNotDrawnMoreOftenThanAnEyeFollows(t *testing.T) {
	p, out, now := aTerminal(40)
	for range 100 {
		p.live("x")
		*now = now.Add(time.Millisecond)
	}
	if n := strings.Count(out.String(), "x"); n != 2 {
		t.Errorf("drawn %d times in 100 ms, want 2", n)
	}
}

func TestTheLiveLineFitsTheScreenAndShowsTheEnd(t *testing.T) {
	p, out, _ := aTerminal(12)
	p.answerLines(nil, "one two three four")
	if got := out.String(); got != "…three four" {
		t.Errorf("%q", got)
	}
}

// A line that is longer than the screen leaves its first half there for good.
func TestTheLiveLineFitsTheScreenInLettersOfTwoColumns(t *testing.T) {
	for width, want := range map[int]string{3: "…", 4: "…る", 5: "…る", 6: "…える", 15: "日本語で考える"} {
		p, out, _ := aTerminal(width)
		p.answerLines(nil, "日本語で考える")
		if got := out.String(); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
	for width, want := range map[int]string{1: "…", 2: "…", 3: "日…", 4: "日…", 5: "日本…", 6: "日本語"} {
		if got := clip("日本語", width); got != want {
			t.Errorf("cut to %d columns: %q, want %q", width, got, want)
		}
	}
}

func TestTheLiveLineSaysWhatGoesOnWhileAFailedCallWaits(t *testing.T) {
	p, out, now := aTerminal(80)
	v := newTextView(io.Discard, p, screen{}, 0, "pawl")
	for _, d := range []event.Data{event.CycleStart{Cycle: 1}, event.ModelRetrying{Attempt: 2, DelayMs: 30000}, event.ModelRequested{Attempt: 2}} {
		*now = now.Add(time.Second)
		if err := v.show(event.Event{Data: d}); err != nil {
			t.Fatal(err)
		}
	}
	waits := strings.Index(out.String(), "cycle 1 · waiting to try again")
	if calls := strings.LastIndex(out.String(), "cycle 1 · waiting for the model"); waits < 0 || calls < waits {
		t.Errorf("it reads %q", out.String())
	}
}

func TestNothingIsDrawnOverAQuestion(t *testing.T) {
	p, out, now := aTerminal(40)
	p.ask(plain, "really? ")
	*now = now.Add(time.Second)
	p.live("waiting")
	p.line(plain, "news")
	if out.String() != "really? " {
		t.Errorf("%q", out.String())
	}
	p.answered()
	p.live("going")
	if out.String() != "really? news\ngoing" {
		t.Errorf("%q", out.String())
	}
}

func TestAPipeGetsPlainLinesOnly(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, screenOf(&out, func(string) string { return "" }))
	p.live("waiting")
	p.line(red, "failed")
	p.live("")
	if out.String() != "failed\n" {
		t.Errorf("%q", out.String())
	}
}

// A file by another author is shown before the decision to run it.
func TestWhatIsWrongWithAFileCannotSteerTheTerminal(t *testing.T) {
	const evil = `a\e]0;title\ab\u202ec`
	p := newProject(t, map[string]string{
		"key.yaml":     `"` + evil + `": 1`,
		"warning.yaml": "apiVersion: aldo-ai/agent.v1\nidentity: {name: x}\nmodel_policy: {primary: {model: scripted/s.yaml}}\n\"" + evil + "\": 1\n",
		"s.yaml":       "- text: done\n",
	})
	for _, args := range [][]string{{"check", "key.yaml"}, {"run", "key.yaml", "x"}, {"check", "warning.yaml"}, {"run", "warning.yaml", "x"}} {
		f := p.pawl(args...)
		if said := f.err; !strings.Contains(said, "a⟨U+001B⟩") || harmless(said) != said {
			t.Errorf("%v says %q", args, said)
		}
	}
}

func TestWhatModelsAndToolsSayCannotSteerTheTerminal(t *testing.T) {
	const evil = "a\x1b]0;title\x07b\rc\u202Ed\x9b31m\te\u200bf\U000e0041g\u2028h\u2066"
	got := harmless(evil)
	for _, bad := range []string{"\x1b", "\x07", "\r", "\u202E", "\u009b", "\u200b", "\U000e0041", "\u2028", "\u2066"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q still holds %q", got, bad)
		}
	}
	for _, said := range []event.ToolResult{{Tool: "x", Output: evil}, {Tool: evil, Output: "there is no such tool", IsError: true}} {
		notes := progress(event.Event{Data: said}, &nextStep{view: new(view.View)})
		if strings.ContainsAny(notes[0].text, "\x1b\r\x07") {
			t.Errorf("%q", notes[0].text)
		}
	}
}

func TestAPathStaysOnItsLine(t *testing.T) {
	for path, want := range map[string]string{
		"/home/né 🎉/agent.yaml":          "/home/né 🎉/agent.yaml",
		"/tmp/a\nstate     ended/f.yaml": `"/tmp/a\nstate     ended/f.yaml"`,
		"/tmp/\x1b[2J/f.yaml":            `"/tmp/\x1b[2J/f.yaml"`,
	} {
		if got := onOneLine(path); got != want {
			t.Errorf("%q is shown as %s, want %s", path, got, want)
		}
	}
}

func TestOnlyAClearWordDecides(t *testing.T) {
	for line, want := range map[string]struct {
		kind   event.ApprovalKind
		reason string
	}{
		"a": {event.ApprovalApproved, ""}, "Allow": {event.ApprovalApproved, ""}, "a b": {}, "all": {},
		"y": {event.ApprovalApproved, ""}, " YES ": {event.ApprovalApproved, ""}, "y.": {}, "yes please": {}, "yo": {}, "ye": {},
		"n": {event.ApprovalRejected, "declined"}, "No": {event.ApprovalRejected, "declined"}, "no,": {event.ApprovalRejected, "declined"},
		"n too risky": {event.ApprovalRejected, "too risky"}, "no, too risky": {event.ApprovalRejected, "too risky"},
		"n: it is late": {event.ApprovalRejected, "it is late"}, "not there": {}, "never": {}, "nope": {},
		"e": {event.ApprovalEdited, ""}, "edit it": {}, "": {}, "  ": {}, "?": {},
	} {
		if got := decision(line); got.Kind != want.kind || got.Reason != want.reason || got.Remember != (want.kind != "" && strings.HasPrefix(strings.ToLower(line), "a")) {
			t.Errorf("%q gives %+v", line, got)
		}
	}
}

func TestAQuestionIsPutAgainUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		k := newKeyboard()
		q := &prompter{keys: k, p: p, by: event.Principal{Name: "ann"}}
		k.take("y") // before anything is asked
		type answer struct {
			event.Resolution
			err error
		}
		answers := make(chan answer, 1)
		go func() {
			d, err := q.ask(t.Context(), event.ToolPendingApproval{CallID: "k-1-1", Tool: "shell.exec", Args: []byte(`{"command":"ls"}`)}.Question())
			answers <- answer{d, err}
		}()
		for _, line := range []string{"", "sure", "y"} {
			synctest.Wait()
			k.take(line)
		}
		if got := <-answers; got.err != nil || got.Kind != event.ApprovalApproved || got.Approver != "ann" {
			t.Errorf("%+v", got)
		}
		if n := strings.Count(out.String(), "[y]es"); n != 3 || !strings.HasPrefix(out.String(), `approve k-1-1: shell.exec {"command":"ls"}?`) {
			t.Errorf("asked %d times, want 3: %q", n, out.String())
		}
		k.finish()
		if _, err := q.ask(t.Context(), event.ToolPendingApproval{}.Question()); err != errNoAnswer {
			t.Errorf("after the end of input: %v", err)
		}
	})
}

// A person about to answer a question needs a moment to see that it is gone.
func TestKeysAfterWithdrawnQuestionAnswerNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		k := newKeyboard()
		q := &prompter{keys: k, p: p, by: event.Principal{Name: "ann"}}
		ctx, decided := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() {
			_, err := q.ask(ctx, event.ToolPendingApproval{CallID: "k-1-1"}.Question())
			asked <- err
		}()
		synctest.Wait()
		decided()
		if err := <-asked; err == nil {
			t.Fatal("somebody answered")
		}
		answers := make(chan event.Resolution, 1)
		go func() {
			d, _ := q.ask(t.Context(), event.ToolPendingApproval{CallID: "k-1-2"}.Question())
			answers <- d
		}()
		synctest.Wait()
		k.take("y")
		time.Sleep(900 * time.Millisecond)
		if synctest.Wait(); strings.Contains(out.String(), "k-1-2") {
			t.Errorf("the next question came at once: %q", out.String())
		}
		k.take("y")
		time.Sleep(time.Second)
		synctest.Wait()
		k.take("n")
		if d := <-answers; d.Kind != event.ApprovalRejected {
			t.Errorf("it was answered %+v", d)
		}
	})
}

func TestAQuestionComesAfterWhatLedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		p.asks = true
		v, k := newTextView(io.Discard, p, screen{}, 0, "pawl"), newKeyboard()
		pending := event.ToolPendingApproval{CallID: "k-1-1", Tool: "shell.exec", Args: []byte("{}")}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = (&prompter{keys: k, p: p}).ask(t.Context(), pending.Question())
		}()
		synctest.Wait()
		for _, d := range []event.Data{event.ToolCall{CallID: "k-1-1", Tool: "shell.exec", Describe: "run make"}, pending} {
			if err := v.show(event.Event{Seq: 1, Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		k.take("y")
		<-answered
		if said, asked := strings.Index(out.String(), "run make"), strings.Index(out.String(), "approve k-1-1"); said < 0 || asked < said {
			t.Errorf("it reads %q", out.String())
		}
	})
}

// What led to it was shown before the run parked, to this person or another one.
func TestQuestionAppearsAfterResumeMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		p.asks = true
		v, k := newTextView(io.Discard, p, screen{}, 1, "pawl"), newKeyboard()
		pending := event.ToolPendingApproval{CallID: "k-1-1", Tool: "shell.exec", Args: []byte("{}")}
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = (&prompter{keys: k, p: p}).ask(t.Context(), pending.Question())
		}()
		for seq, d := range []event.Data{pending, event.RunResumed{}} {
			synctest.Wait()
			if err := v.show(event.Event{Seq: int64(seq) + 1, Run: "k", Data: d}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		k.take("y")
		<-answered
		if said, asked := strings.Index(out.String(), "run k resumed"), strings.Index(out.String(), "approve k-1-1"); said < 0 || asked < said {
			t.Errorf("it reads %q", out.String())
		}
	})
}

func TestWithdrawnQuestionEndsItsLine(t *testing.T) {
	p, out, _ := aTerminal(80)
	k := newKeyboard()
	k.finish()
	if _, err := (&prompter{keys: k, p: p}).ask(t.Context(), event.ToolPendingApproval{CallID: "k-1-1"}.Question()); !errors.Is(err, errNoAnswer) {
		t.Errorf("%v", err)
	}
	if !strings.HasSuffix(out.String(), "[e]dit:  (no answer)\n") {
		t.Errorf("it reads %q", out.String())
	}
}

// A call of another run of the tree is asked about, and its lines are not here.
func TestAQuestionDoesNotWaitForLinesThatNeverCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		newTextView(io.Discard, p, screen{}, 0, "pawl")
		k, answered := newKeyboard(), make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = (&prompter{keys: k, p: p}).ask(t.Context(), event.ToolPendingApproval{CallID: "child-1-1"}.Question())
		}()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		k.take("n")
		<-answered
		if !strings.Contains(out.String(), "approve child-1-1") {
			t.Errorf("it reads %q", out.String())
		}
	})
}

func TestAQuestionEndsWithTheRun(t *testing.T) {
	p, _, _ := aTerminal(80)
	q := &prompter{keys: newKeyboard(), p: p}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.ask(ctx, event.ToolPendingApproval{}.Question()); err == nil {
		t.Error("no error")
	}
}
