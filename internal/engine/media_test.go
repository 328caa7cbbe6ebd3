package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// rows: HAR-6
func TestAResultBringsNoMoreMediaThanARequestCanCarry(t *testing.T) {
	file := func(mediaType string, size int) llm.Media {
		return llm.Media{MediaType: mediaType, Name: "shot", Data: bytes.Repeat([]byte("x"), size)}
	}
	page, note := file("image/png", 12<<20), file("image/png", 40)
	for name, c := range map[string]struct {
		gave []llm.Media
		kept []int
		err  error
		says string
	}{
		"some that fit":          {gave: []llm.Media{page, note}, kept: []int{0, 1}},
		"an address":             {gave: []llm.Media{{MediaType: "image/png", URL: "https://example.com/a.png"}}, kept: []int{0}},
		"one too large":          {gave: []llm.Media{file("image/png", attach.MaxFile+1), note}, kept: []int{1}, says: "[1 of the 2 images and files of this result was left out"},
		"a text too large":       {gave: []llm.Media{file("text/csv", attach.MaxText+1)}, says: "[1 of the 1"},
		"too much together":      {gave: []llm.Media{page, page, note}, kept: []int{0, 2}, says: "[1 of the 3"},
		"too many":               {gave: slices.Repeat([]llm.Media{note}, 10_000), kept: slices.Collect(upTo(100)), says: "[9900 of the 10000 images and files of this result were left out"},
		"one without content":    {gave: []llm.Media{{MediaType: "image/png", Name: "a.png"}, note}, kept: []int{1}, says: "[1 of the 2"},
		"beside a tool's error":  {gave: []llm.Media{file("image/png", attach.MaxFile+1)}, err: &tool.Error{Type: "tool_error", Message: "half of it"}, says: "[1 of the 1"},
		"a stranger's reference": {gave: []llm.Media{{MediaType: "image/png", Blob: journal.Digest([]byte("x"))}}, says: "[1 of the 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t).tools(printing("shoot", tool.Result{Output: "done", Media: c.gave}, c.err))
			run := r.turns(scripted.Turn{ToolCalls: calls("shoot", "{}")}, scripted.Turn{Text: "ok"}).start(t.Context())
			drain(t, run, false)
			got := results(r.whole(run.ID))[0]
			if len(got.Media) != len(c.kept) {
				t.Fatalf("%d are kept, want %d: %.200q", len(got.Media), len(c.kept), got.Output)
			}
			for i, k := range c.kept {
				if got.Media[i].URL != c.gave[k].URL || !bytes.Equal(got.Media[i].Data, c.gave[k].Data) && got.Media[i].Blob != journal.Digest(c.gave[k].Data) {
					t.Errorf("in place %d stands another than the tool's %d", i, k)
				}
			}
			if !strings.Contains(got.Output, "done") || !strings.Contains(got.Output, c.says) || c.says == "" && got.Output != "done" {
				t.Errorf("the model reads %q, want it to hold %q", got.Output, c.says)
			}
		})
	}
}

func upTo(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestAMessageWithMoreFilesThanARequestCarriesIsRefused(t *testing.T) {
	r := newRig(t)
	run := r.turns(scripted.Turn{Text: "ok"}).start(t.Context())
	drain(t, run, false)
	err := r.Send(t.Context(), journal.Command{Run: run.ID, Kind: journal.Input, Media: []llm.Media{
		{MediaType: "image/png", Name: "a.png", Data: make([]byte, 12<<20)},
		{MediaType: "image/png", Name: "b.png", Data: make([]byte, 12<<20)},
	}})
	if err == nil || !strings.Contains(err.Error(), `"b.png"`) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("it says %v", err)
	}
}
