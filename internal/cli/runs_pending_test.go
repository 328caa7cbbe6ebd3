package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// A review is shown as a call is, and decided by its loop's id.
func TestAReviewIsShownWithTheCommandThatDecidesIt(t *testing.T) {
	asked := event.ReviewRequested{LoopID: "refine", Number: 2, Output: "a draft", Digest: "d1", Reason: "is it good?"}
	q := control.Pending{Run: "k7", Open: drive.Open{Question: asked.Question()}, Path: []control.Step{{Run: "m3", Name: "team"}, {Run: "k7", Name: "writer"}}}
	var b strings.Builder
	questionRows(q, journal.Run{ID: "r1"}, time.Now(), "pawl", func(name, value string) {
		if value != "" {
			b.WriteString(name + ": " + value + "\n")
		}
	})
	want := `waits for: refine iteration 2 {"iteration":2,"output":"a draft"}
  in: run k7, by way of team > writer
  because: is it good?
  digest: d1
  decide: pawl runs approve k7 refine, or pawl runs reject k7 refine --reason "…"
`
	if b.String() != want {
		t.Errorf("it is shown as\n%swant\n%s", b.String(), want)
	}
}

// Text that many spaces push out of view is in view where a call is decided.
func TestSpacesAreCountedInAllThatAPersonDecides(t *testing.T) {
	far := "ok" + strings.Repeat(" ", 400) + "&& curl x"
	call := event.ToolCall{CallID: "k7-1-1", Tool: "shell.exec", Describe: "run " + far, Args: json.RawMessage(`{"command":"` + far + `"}`)}
	asked := event.ToolPendingApproval{CallID: call.CallID, Tool: call.Tool, Args: call.Args, Reason: far}
	q := control.Pending{Run: "k7", Open: drive.Open{Question: asked.Question()}}
	var b strings.Builder
	questionRows(q, journal.Run{ID: "k7"}, time.Now(), "pawl", func(name, value string) { b.WriteString(name + ": " + value + "\n") })
	for _, want := range []string{`waits for: k7-1-1 shell.exec {"command":"ok⟨400 spaces⟩&& curl x"}`, "because: ok⟨400 spaces⟩&& curl x"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if got := progress(event.Event{Data: call}, &nextStep{view: new(view.View)})[0].text; got != "  → run ok⟨400 spaces⟩&& curl x" {
		t.Errorf("the call is shown as %q", got)
	}
}

// Only a call has arguments to change.
func TestAReviewAtTheTerminalIsApprovedOrRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, out, _ := aTerminal(80)
		k := newKeyboard()
		q := &prompter{keys: k, p: p, by: event.Principal{Name: "ann"}}
		answers := make(chan event.Resolution, 1)
		go func() {
			d, _ := q.ask(t.Context(), event.ReviewRequested{LoopID: "refine", Number: 2, Output: "a draft"}.Question())
			answers <- d
		}()
		for _, line := range []string{"e", "a", "n too long"} {
			synctest.Wait()
			k.take(line)
		}
		if d := <-answers; d.Kind != event.ApprovalRejected || d.Reason != "too long" || d.Approver != "ann" {
			t.Errorf("it was answered %+v", d)
		}
		if !strings.HasPrefix(out.String(), `approve refine: iteration 2 {"iteration":2,"output":"a draft"}?`) || strings.Contains(out.String(), "[e]dit") {
			t.Errorf("it was asked as %q", out.String())
		}
	})
}

// The same id in two runs names neither.
func TestAnIdThatSeveralRunsAskUnderNamesNoQuestion(t *testing.T) {
	asked := event.ReviewRequested{LoopID: "refine"}.Question()
	pending := []control.Pending{{Run: "a", Open: drive.Open{Question: asked}}, {Run: "b", Open: drive.Open{Question: asked}}}
	if _, err := theOne(journal.Run{ID: "r1"}, pending, "refine"); err == nil || !strings.Contains(err.Error(), "name one of a, b") {
		t.Errorf("it is told: %v", err)
	}
	if p, err := theOne(journal.Run{ID: "r1"}, pending[:1], "refine"); err != nil || p.Run != "a" {
		t.Errorf("it is %+v, %v", p, err)
	}
	if p, err := theOne(journal.Run{ID: "r1"}, pending, "other"); err != nil || p.ID != "" {
		t.Errorf("it is %+v, %v", p, err)
	}
}

// The lines of a run say of a review what they say of a call.
func TestReviewIsShownWhenAskedAndDecided(t *testing.T) {
	asked := event.ReviewRequested{LoopID: "refine", Number: 2, Reason: "is it good?"}
	decided := asked.Resolved(event.Resolution{ID: "refine", Kind: event.ApprovalRejected, Approver: "ann"})
	var told []string
	for _, d := range []event.Data{asked, decided} {
		for _, n := range progress(event.Event{Data: d}, &nextStep{view: new(view.View)}) {
			told = append(told, n.text)
		}
	}
	want := []string{"  ? refine iteration 2 needs an approval", "    because is it good?", "  refine rejected by ann"}
	if !slices.Equal(told, want) {
		t.Errorf("it is told as %q, want %q", told, want)
	}
}
