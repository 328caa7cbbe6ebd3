package pawl_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
	"github.com/pawlrun/pawl/llm"
)

// seen are the files of a request's message.
func seen(m *llm.Message) (files []llm.Media) {
	for _, p := range m.Parts {
		if f, ok := p.(llm.Media); ok {
			files = append(files, f)
		}
	}
	return files
}

func TestFilesGoWithATaskAndAreStoredBesideItsEvents(t *testing.T) {
	m := &recorder{answer: func(*llm.Request) *llm.Response { return textual("a cat") }}
	a := pawl.Agent{Model: pawl.Target{Name: "test/model", Client: m}}
	photo := llm.Media{MediaType: "image/png", Name: "cat.png", Data: bytes.Repeat([]byte("meow"), 10_000)}
	o := pawl.Options{Journal: memory.New(nil), Attachments: []llm.Media{photo}}
	run, err := a.Start(t.Context(), "what is this?", o)
	if err != nil {
		t.Fatal(err)
	}
	final(t, run)
	if files := seen(m.requests[0].Messages[0]); len(files) != 1 || !bytes.Equal(files[0].Data, photo.Data) {
		t.Errorf("the model sees %d files", len(files))
	}
	records, err := o.Journal.Records(t.Context(), run.ID(), 0, 1)
	if err != nil || len(records[0].Body) > 10_000 {
		t.Fatalf("the first event has %d bytes: %v", len(records[0].Body), err)
	}
	if blob, err := o.Journal.Blob(t.Context(), journal.Digest(photo.Data)); err != nil || !bytes.Equal(blob, photo.Data) {
		t.Errorf("%d bytes are kept: %v", len(blob), err)
	}

	// A message may be a file alone, and the run that goes on still sees the first.
	small := llm.Media{MediaType: "text/plain", Name: "note.txt", Data: []byte("a dog")}
	run, err = a.Continue(t.Context(), run.ID(), "", pawl.Options{Journal: o.Journal, Attachments: []llm.Media{small}})
	if err != nil {
		t.Fatal(err)
	}
	if s := final(t, run); s.Outcome.Reason != event.ReasonFinalAnswer {
		t.Fatalf("outcome %+v", s.Outcome)
	}
	messages := m.requests[1].Messages
	if first, last := seen(messages[0]), seen(messages[len(messages)-1]); len(messages) != 3 || len(last) != 1 ||
		!bytes.Equal(first[0].Data, photo.Data) || string(last[0].Data) != "a dog" {
		t.Errorf("%d messages: %+v", len(messages), last)
	}
}

func TestTooLargeAttachmentsAreRefusedBeforeTheRun(t *testing.T) {
	m := &recorder{answer: func(*llm.Request) *llm.Response { return textual("a cat") }}
	a := pawl.Agent{Model: pawl.Target{Name: "test/model", Client: m}}
	page := llm.Media{MediaType: "image/png", Name: "page.png", Data: make([]byte, 12<<20)}
	small := llm.Media{MediaType: "image/png", Name: "dot.png", Data: []byte("x")}
	for name, c := range map[string]struct {
		files []llm.Media
		want  string
	}{
		"together": {[]llm.Media{page, page}, "together the files have more than 20 MiB"},
		"too many": {slices.Repeat([]llm.Media{small}, 101), "at most 100 images and files"},
		"hollow":   {[]llm.Media{small, {MediaType: "image/png", Name: "none.png"}}, `"none.png" has no content`},
	} {
		store := memory.New(nil)
		_, err := a.Start(t.Context(), "what is this?", pawl.Options{Journal: store, Attachments: c.files})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if runs, err := store.Runs(t.Context(), journal.Filter{}); err != nil || len(runs) != 0 || len(m.requests) != 0 {
			t.Errorf("%s: %d runs and %d requests are there: %v", name, len(runs), len(m.requests), err)
		}
	}
}
