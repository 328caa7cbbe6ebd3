package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/scripted"
)

// An approval in every combination of what may be true around it: decided yes or
// no, streamed or not, with reasoning that must return untouched or without,
// and with a provider that gives every call the same id.
//
// rows: ALDO-58
func TestApprovalsInEveryCombination(t *testing.T) {
	for _, approve := range []bool{true, false} {
		for _, whole := range []bool{true, false} {
			for _, thinks := range []bool{true, false} {
				for _, reused := range []bool{true, false} {
					name := fmt.Sprintf("approved %t, whole %t, reasoning %t, ids reused %t", approve, whole, thinks, reused)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { approvalCase(t, approve, whole, thinks, reused) })
					})
				}
			}
		}
	}
}

func approvalCase(t *testing.T, approve, whole, thinks, reused bool) {
	var ran atomic.Int32
	m := &askingModel{thinks: thinks, reused: reused}
	r := newRig(t).gate("work").
		tools(toolFunc("work", func(context.Context) (string, error) { ran.Add(1); return "worked", nil })).
		model(m)
	r.cfg.NoStream = whole
	run := r.start(t.Context())
	for cycle := 1; cycle <= 2; cycle++ {
		parkedAs(t, run, event.ParkApproval)
		before := r.journalText(run.ID)
		kind := journal.Approve
		if !approve {
			kind = journal.Reject
		}
		r.send(journal.Command{Run: run.ID, Kind: kind, CallID: fmt.Sprintf("%s-%d-1", run.ID, cycle), By: "ann", Text: "as I see it"})
		run = r.resume(run.ID)
		wait(t, run)
		if after := r.journalText(run.ID); !bytes.HasPrefix([]byte(after), []byte(before)) {
			t.Fatal("what was journalled before the decision has changed")
		}
	}
	if o := outcome(t, run); !o.OK || o.FinalOutput != "done" {
		t.Fatalf("outcome %+v", o)
	}
	want := int32(0)
	if approve {
		want = 2
	}
	if ran.Load() != want {
		t.Errorf("%d calls ran, want %d", ran.Load(), want)
	}
	m.check(t)
	events := r.whole(run.ID)
	settled := 0
	for _, e := range events {
		switch d := e.Data.(type) {
		case event.ToolResult:
			settled++
			if rejected := d.ErrorType == event.ErrorRejected; rejected == approve {
				t.Errorf("result %+v", d)
			}
		case event.ModelResponse:
			if llm.Parts(d.Parts).Text() == "done" && settled != 2 {
				t.Errorf("the final text comes after %d results", settled)
			}
		}
	}
	found, err := replay.Run(t.Context(), r.Past(), run.ID, func(string) (llm.Model, string, error) { return scripted.New("none"), "model", nil })
	if err != nil || len(found.Divergences) > 0 || found.Decisions == 0 {
		t.Errorf("replayed %+v, %v", found, err)
	}
}

// askingModel asks for one call in each of two cycles, and keeps what it is
// sent.
type askingModel struct {
	thinks, reused bool
	heard          [][]byte
}

func (m *askingModel) Generate(_ context.Context, req *llm.Request) (*llm.Response, error) {
	text, err := json.Marshal(req.Messages)
	if err != nil {
		return nil, err
	}
	m.heard = append(m.heard, text)
	cycle := len(m.heard)
	if cycle == 3 {
		return said("done"), nil
	}
	a := &llm.Response{Finish: llm.FinishTool}
	if m.thinks {
		a.Parts = append(a.Parts, llm.Reasoning{Text: "hm", Signature: fmt.Sprint("signed ", cycle), Raw: json.RawMessage(`{"sealed":true}`)})
	}
	id := fmt.Sprint("call_", cycle)
	if m.reused {
		id = "call_0"
	}
	a.Parts = append(a.Parts, llm.ToolCall{ProviderID: id, Name: "work", Args: json.RawMessage(`{}`)})
	return a, nil
}

func (m *askingModel) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	emit(llm.Delta{Kind: llm.DeltaReasoning, Text: "hm"})
	return m.Generate(ctx, req)
}

// check holds the requests against each other: each begins with what the one
// before it said, and reasoning comes back as it was.
func (m *askingModel) check(t *testing.T) {
	t.Helper()
	if len(m.heard) != 3 {
		t.Fatalf("%d requests", len(m.heard))
	}
	for i, text := range m.heard {
		var messages []llm.Message
		if err := json.Unmarshal(text, &messages); err != nil {
			t.Fatal(err)
		}
		if len(messages) != 1+2*i {
			t.Fatalf("request %d has %d messages", i+1, len(messages))
		}
		if i > 0 && !bytes.HasPrefix(text, bytes.TrimSuffix(m.heard[i-1], []byte("]"))) {
			t.Errorf("request %d does not begin with request %d", i+1, i)
		}
		if i == 0 || !m.thinks {
			continue
		}
		want := llm.Part(llm.Reasoning{Text: "hm", Signature: fmt.Sprint("signed ", i), Raw: json.RawMessage(`{"sealed":true}`)})
		if diff := cmp.Diff(want, messages[2*i-1].Parts[0]); diff != "" {
			t.Errorf("the reasoning before call %d (-made +sent):\n%s", i, diff)
		}
	}
}
