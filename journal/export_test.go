package journal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

// family is a run, a fork of it that refers to a content, and an export of the
// fork.
func family(t testing.TB) []byte {
	t.Helper()
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
	return out.Bytes()
}

func TestAnExportIsCheckedWithoutTheJournal(t *testing.T) {
	v, got, err := journal.VerifyExport(t.Context(), bytes.NewReader(family(t)))
	if err != nil || v.Run != "f" || v.Events != 5 || got.Blobs != 1 {
		t.Errorf("%+v, %+v, %v", v, got, err)
	}
}

func TestAChangedExportIsFound(t *testing.T) {
	whole := string(family(t))
	lines := strings.SplitAfter(whole, "\n")
	for name, c := range map[string]struct {
		text string
		is   error
	}{
		"a changed event":     {strings.Replace(whole, "two", "2wo", 1), journal.ErrCorrupt},
		"a lost event":        {strings.Replace(whole, lines[3], "", 1), journal.ErrCorrupt},
		"a cut file":          {strings.Join(lines[:len(lines)-2], ""), journal.ErrCorrupt},
		"a changed content":   {strings.Replace(whole, `"bytes":"d`, `"bytes":"e`, 1), journal.ErrCorrupt},
		"half a line":         {whole[:len(whole)/2], journal.ErrCorrupt},
		"something behind it": {whole + lines[1], journal.ErrCorrupt},
		"another file":        {"{}\n", journal.ErrForeign},
		"nothing":             {"", journal.ErrCorrupt},
		"a newer export":      {strings.Replace(whole, `"pawlExport":1`, `"pawlExport":2`, 1), journal.ErrNewer},
	} {
		if c.text == whole {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, _, err := journal.VerifyExport(t.Context(), strings.NewReader(c.text)); !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
	}
}

func FuzzVerifyExport(f *testing.F) {
	whole := family(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"pawlExport":1,"run":"a"}` + "\n" + `{"row":{"id":"a","forkOf":"a","forkSeq":1,"seq":2}}` + "\n" + `{"end":{"runs":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _, _ = journal.VerifyExport(t.Context(), bytes.NewReader(text))
	})
}
