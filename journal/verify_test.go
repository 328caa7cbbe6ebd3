package journal_test

import (
	"bytes"
	"errors"
	"fmt"
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
