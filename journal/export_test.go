package journal_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// A fork is exported with the run that it stands on, what its events refer to, and
// every event as it is stored.
func TestAnExportHoldsAllThatARunDependsOn(t *testing.T) {
	s := memory.New(journaltest.Epoch)
	a := journaltest.Start(t, s, "a")
	a.Append(t, event.InputReceived{Text: "<&> two"}, event.InputReceived{Text: "three"})
	f := journaltest.Fork(t, s, "f", "a", 2)
	blob := journal.NewBlob([]byte("the whole result"))
	b := f.Batch(t, event.ToolResult{CallID: "c", Blob: blob.Digest})
	b.Blobs = []journal.Blob{blob}
	if err := f.Write(t, b); err != nil {
		t.Fatal(err)
	}
	f.End(t)
	var out bytes.Buffer
	got, err := journal.Export(t.Context(), s, "f", &out)
	if want := (journal.Exported{Runs: 2, Events: 5, Blobs: 1}); err != nil || got != want {
		t.Fatalf("exported %+v, %v; want %+v", got, err, want)
	}
	var kinds []string
	for line := range strings.Lines(out.String()) {
		var l struct {
			Export int             `json:"pawlExport"`
			Run    string          `json:"run"`
			Row    *journal.Run    `json:"row"`
			Event  json.RawMessage `json:"event"`
			Digest string          `json:"digest"`
			Bytes  []byte          `json:"bytes"`
			End    *journal.Exported
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Export == journal.ExportVersion:
			kinds = append(kinds, "export of "+l.Run)
		case l.Row != nil:
			kinds = append(kinds, "run "+l.Row.ID)
		case l.Event != nil:
			e, err := event.Decode(l.Event)
			if err != nil {
				t.Fatal(err)
			}
			records, err := s.Records(t.Context(), "f", e.Seq-1, 1)
			if err != nil || !bytes.Equal(records[0].Body, l.Event) {
				t.Errorf("event %d is %s, stored as %s, %v", e.Seq, l.Event, records[0].Body, err)
			}
		case l.Digest == blob.Digest && bytes.Equal(l.Bytes, blob.Bytes):
			kinds = append(kinds, "the content")
		case l.End != nil && *l.End == got:
			kinds = append(kinds, "end")
		}
	}
	if want := []string{"export of f", "run a", "run f", "the content", "end"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
}
