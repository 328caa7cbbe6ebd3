package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// stored writes five events, of which the one at index has another body, and
// keeps everything else as it was.
func stored(t testing.TB, index int, change func(body []byte) []byte) (s journal.Store, run string, original []byte) {
	t.Helper()
	s = memory.New(journaltest.Epoch)
	d := journaltest.Start(t, s, "run")
	b := d.Batch(t,
		event.CycleStart{Cycle: 1, MaxCycles: 2},
		event.ModelRequested{Attempt: 1, Model: "scripted/x"},
		event.InputReceived{Text: "hello", By: "somebody"},
		event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true}},
	)
	original = b.Records[index].Body
	b.Records[index].Body = change(bytes.Clone(original))
	if err := d.Write(t, b); err != nil {
		t.Fatal(err)
	}
	return s, "run", original
}

// rows: ALDO-63
func TestVerifyFindsEveryChangedByte(t *testing.T) {
	for index := range 4 {
		_, _, original := stored(t, index, func(b []byte) []byte { return b })
		for at := range original {
			s, run, _ := stored(t, index, func(b []byte) []byte { b[at] ^= 1; return b })
			_, err := journal.Verify(t.Context(), s, run, "")
			damage, ok := errors.AsType[*journal.CorruptError](err)
			// A changed link reads as a change of the event that it points at.
			if seq := int64(index) + 2; !ok || damage.Seq != seq && damage.Seq != seq-1 {
				t.Errorf("byte %d of event %d (%q): %v", at, seq, original[at], err)
			}
		}
	}
}

// Each event follows on the one before it, and still they are no run.
//
// rows: ALDO-63
func TestVerifyFindsAChainThatIsNoRun(t *testing.T) {
	end := event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, Reason: event.ReasonFinalAnswer, OK: true}}
	for name, c := range map[string]struct {
		before string
		events []event.Data
		seq    int64
	}{
		"an event behind the end":            {"", []event.Data{end, event.InputReceived{Text: "hello", By: "somebody"}}, 3},
		"two ends":                           {"", []event.Data{end, end}, 3},
		"a beginning that has one before it": {"0123456789abcdef0123456789abcdef", []event.Data{end}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New(journaltest.Epoch)
			d := &journaltest.Driver{Store: s, Head: c.before}
			d.Lease.Run = "run"
			b := d.Batch(t, append([]event.Data{event.RunStarted{Kind: "Agent"}}, c.events...)...)
			if _, _, err := s.Create(t.Context(), journal.Run{ID: "run", Kind: "Agent", Created: journaltest.Epoch()}, b); err != nil {
				t.Fatal(err)
			}
			_, err := journal.Verify(t.Context(), s, "run", "")
			if damage, ok := errors.AsType[*journal.CorruptError](err); !ok || damage.Seq != c.seq {
				t.Errorf("%v, want damage at event %d", err, c.seq)
			}
		})
	}
}

// A row says what a run waits for, and lists and decisions read it.
func TestVerifyComparesWhatARunWaitsForWithItsEvents(t *testing.T) {
	asks := event.ToolPendingApproval{CallID: "c", Tool: "shell.exec", Digest: "d"}
	parks := event.RunParked{Reason: event.ParkApproval}
	question := func(change func(*journal.Wait)) []journal.Wait {
		q := asks.Question()
		w := journal.Wait{ID: q.ID, Kind: q.Kind, Seq: 3, Digest: q.Digest, ExpiresAt: q.ExpiresAt, Message: q.Message}
		change(&w)
		return []journal.Wait{w}
	}
	right := question(func(*journal.Wait) {})
	for name, c := range map[string]struct {
		waits *journal.Waits
		wrong string
	}{
		"as the events say": {&journal.Waits{Questions: right, Parked: &parks, Children: []string{"child"}}, ""},
		"unknown":           {nil, ""},
		"decided":           {&journal.Waits{Parked: &parks, Children: []string{"child"}}, ""},
		"another digest": {&journal.Waits{Questions: question(func(w *journal.Wait) { w.Digest = "other" }), Parked: &parks, Children: []string{"child"}},
			"it waits for a question that the event does not ask"},
		"an event that asks nothing": {&journal.Waits{Questions: question(func(w *journal.Wait) { w.Seq = 2 }), Parked: &parks, Children: []string{"child"}},
			"it waits for a question that the event does not ask"},
		"another reason": {&journal.Waits{Questions: right, Parked: &event.RunParked{Reason: event.ParkPaused}, Children: []string{"child"}},
			"it is parked for another reason than the run's events say"},
		"no reason":     {&journal.Waits{Questions: right, Children: []string{"child"}}, "it is parked for another reason than the run's events say"},
		"another child": {&journal.Waits{Questions: right, Parked: &parks, Children: []string{"other"}}, "it waits for other children than the run's events"},
		"no child":      {&journal.Waits{Questions: right, Parked: &parks}, "it waits for other children than the run's events"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New(journaltest.Epoch)
			d := journaltest.Start(t, s, "run")
			d.Append(t, event.CycleStart{Cycle: 1, MaxCycles: 2})
			b := d.Batch(t, asks, event.ChildStarted{Child: "gone"}, event.ChildStarted{Child: "child"}, event.ChildFinished{Child: "gone"}, parks)
			b.Status.State, b.Status.Detail, b.Status.Waits = journal.Parked, string(parks.Reason), c.waits
			if err := d.Write(t, b); err != nil {
				t.Fatal(err)
			}
			_, err := journal.Verify(t.Context(), s, "run", "")
			damage, _ := errors.AsType[*journal.CorruptError](err)
			switch {
			case c.wrong == "" && err != nil:
				t.Error(err)
			case c.wrong != "" && (damage == nil || damage.What != c.wrong):
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}

// A parked run waits for each question with which it parked, until something answers it.
func TestVerifyMissesNoQuestionOfAParkedRun(t *testing.T) {
	asks := []event.Asking{event.ToolPendingApproval{CallID: "a", Digest: "d"}, event.ToolPendingApproval{CallID: "b", Digest: "d"}}
	approves := func(id string) event.Data {
		return event.ToolApprovalResolved{CallID: id, Kind: event.ApprovalApproved}
	}
	parks := func(ids ...string) event.RunParked { return event.RunParked{Reason: event.ParkApproval, CallIDs: ids} }
	const missing = "a question with which it parked is missing"
	for name, c := range map[string]struct {
		since []event.Data
		open  string
		wrong string
	}{
		"both":                         {nil, "ab", ""},
		"one is missing":               {nil, "a", missing},
		"the other is missing":         {nil, "b", missing},
		"both are missing":             {nil, "", missing},
		"one is decided":               {[]event.Data{approves("a")}, "b", ""},
		"another is decided":           {[]event.Data{approves("a")}, "a", missing},
		"both are decided":             {[]event.Data{approves("a"), approves("b")}, "", ""},
		"a call has ended":             {[]event.Data{event.ToolResult{CallID: "b"}}, "a", ""},
		"a permission may answer them": {[]event.Data{event.PermissionAdded{CallID: "a"}}, "", ""},
		"a message answers no call":    {[]event.Data{event.InputReceived{Text: "hello"}}, "a", missing},
		"parked again without them":    {[]event.Data{event.RunResumed{}, parks()}, "", ""},
		"parked again with one":        {[]event.Data{event.RunResumed{}, parks("b")}, "", missing},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.New(journaltest.Epoch)
			d := journaltest.Start(t, s, "run")
			d.Append(t, event.CycleStart{Cycle: 1, MaxCycles: 2})
			events := append([]event.Data{asks[0], asks[1], parks("a", "b")}, c.since...)
			var w journal.Waits
			for _, e := range events {
				if p, is := e.(event.RunParked); is {
					w.Parked = &p
				}
			}
			for i, a := range asks {
				if q := a.Question(); strings.Contains(c.open, q.ID) {
					w.Questions = append(w.Questions, journal.Wait{ID: q.ID, Kind: q.Kind, Seq: int64(3 + i), Digest: q.Digest})
				}
			}
			b := d.Batch(t, events...)
			b.Status.State, b.Status.Detail, b.Status.Waits = journal.Parked, string(event.ParkApproval), &w
			if err := d.Write(t, b); err != nil {
				t.Fatal(err)
			}
			_, err := journal.Verify(t.Context(), s, "run", "")
			damage, _ := errors.AsType[*journal.CorruptError](err)
			if c.wrong == "" && err != nil || c.wrong != "" && (damage == nil || damage.What != c.wrong) {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	for index := range 4 {
		_, _, original := stored(f, index, func(b []byte) []byte { return b })
		f.Add(index, original)
		f.Add(index, original[:len(original)/2])
		f.Add(index, []byte(`{"seq":`+fmt.Sprint(index+2)+`,"run":"run","type":"nudge","data":null}`))
	}
	f.Fuzz(func(t *testing.T, index int, body []byte) {
		index &= 3
		s, run, original := stored(t, index, func([]byte) []byte { return body })
		_, err := journal.Verify(t.Context(), s, run, "")
		if same := bytes.Equal(body, original); same != (err == nil) || err != nil && !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("the same bytes %t, and verify says %v", same, err)
		}
	})
}
