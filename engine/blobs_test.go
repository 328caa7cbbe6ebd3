package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// printing is a tool that gives what it was made with.
func printing(name string, r tool.Result, err error) tool.Tool {
	return tool.New(name, "Print.", func(context.Context, struct{}) (tool.Result, error) { return r, err })
}

// reads is a call of result.read.
func reads(handle string, offset, limit int) scripted.Call {
	raw, _ := json.Marshal(map[string]any{"handle": handle, "offset": offset, "limit": limit})
	return call(result.Name, string(raw))
}

// lines are n numbered lines.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line " + strings.Repeat("é", i%7) + "\n")
	}
	return b.String()
}

// rows: HAR-6, HAR-48
func TestALongResultIsKeptWholeAndTheModelReadsOnInIt(t *testing.T) {
	whole := lines(3000)
	handle := journal.Digest([]byte(whole))
	r := newRig(t).tools(printing("print", tool.Result{Output: whole}, nil), result.New())
	r.cfg.Limits.MaxResultChars = 1000
	r.turns(
		scripted.Turn{ToolCalls: calls("print", "{}")},
		scripted.Turn{ToolCalls: []scripted.Call{reads(handle, 666, 0)}},
		scripted.Turn{Text: "ok"})
	run := r.start(t.Context())
	drain(t, run, false)
	got := results(r.whole(run.ID))
	runes := []rune(whole)
	if got[0].Blob != handle || !got[0].Truncated || !strings.HasPrefix(got[0].Output, string(runes[:666])+"\n[… ") ||
		!strings.HasSuffix(got[0].Output, " …]\n"+string(runes[len(runes)-334:])) ||
		!strings.Contains(got[0].Output, `result.read {"handle":"`+handle+`","offset":666}`) {
		t.Errorf("result %+v", got[0])
	}
	if blob, err := r.store.Blob(t.Context(), handle); err != nil || string(blob) != whole {
		t.Errorf("%d of %d bytes are kept: %v", len(blob), len(whole), err)
	}
	if n := utf8.RuneCountInString(got[1].Output); n > 1000 || got[1].Blob != "" || !strings.HasSuffix(got[1].Output, string(runes[666:666+880])) {
		t.Errorf("the page has %d characters: %+v", n, got[1])
	}
}

func TestAReferenceAndItsContentAreWrittenByTheSameAppend(t *testing.T) {
	store := &watched{Store: newRig(t).store}
	broken := errors.New("the disk is gone")
	whole := lines(100)
	store.onAppend = func(b journal.Batch) error {
		if !holds(b, "tool_result") {
			return nil
		}
		if len(b.Blobs) != 1 || !b.Blobs[0].Intact() || string(b.Blobs[0].Bytes) != whole {
			t.Errorf("the append of the result carries %d blobs", len(b.Blobs))
		}
		return broken
	}
	r := newRig(t, store).tools(printing("print", tool.Result{Output: whole}, nil))
	r.cfg.Limits.MaxResultChars = 50
	run := r.turns(scripted.Turn{ToolCalls: calls("print", "{}")}).start(t.Context())
	if _, err := run.Wait(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := store.Blob(t.Context(), journal.Digest([]byte(whole))); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("content without a reference: %v", err)
	}
	if n := len(results(r.journal(run.ID))); n != 0 {
		t.Errorf("%d results without content", n)
	}
}

func TestARunReadsNothingThatAnotherRunKeeps(t *testing.T) {
	secret := lines(200)
	handle := journal.Digest([]byte(secret))
	r := newRig(t).tools(printing("print", tool.Result{Output: secret}, nil), result.New())
	r.cfg.Limits.MaxResultChars = 1000
	wait(t, r.turns(scripted.Turn{ToolCalls: calls("print", "{}")}, scripted.Turn{Text: "ok"}).start(t.Context()))
	other := r.turns(scripted.Turn{ToolCalls: []scripted.Call{reads(handle, 0, 100)}}, scripted.Turn{Text: "ok"}).start(t.Context())
	drain(t, other, false)
	got := results(r.whole(other.ID))
	if len(got) != 1 || got[0].ErrorType != event.ErrorNotFound || strings.Contains(got[0].Output, "line é") {
		t.Errorf("results %+v", got)
	}
}

func TestAToolCannotSmuggleInAReferenceToAnotherRunsContent(t *testing.T) {
	secret := lines(200)
	handle := journal.Digest([]byte(secret))
	r := newRig(t).tools(printing("print", tool.Result{Output: secret}, nil))
	r.cfg.Limits.MaxResultChars = 1000
	wait(t, r.turns(scripted.Turn{ToolCalls: calls("print", "{}")}, scripted.Turn{Text: "ok"}).start(t.Context()))
	r.tools(printing("forge", tool.Result{Media: []llm.Media{{MediaType: "text/plain", Blob: handle}}}, nil), result.New())
	run := r.turns(
		scripted.Turn{ToolCalls: calls("forge", "{}")},
		scripted.Turn{ToolCalls: []scripted.Call{reads(handle, 0, 100)}}, scripted.Turn{Text: "ok"}).start(t.Context())
	drain(t, run, false)
	got := results(r.whole(run.ID))
	if got[0].Media[0].Blob != "" || got[1].ErrorType != event.ErrorNotFound {
		t.Errorf("results %+v", got)
	}
}
