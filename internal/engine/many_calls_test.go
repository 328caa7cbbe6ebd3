package engine_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/llm"
)

// Each of these calls takes five decisions and no effect.
func TestAnAnswerMayHoldHundredsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := make(llm.Parts, 256)
		for i := range parts {
			parts[i] = llm.ToolCall{Name: "work", Args: json.RawMessage(`{}`)}
		}
		r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).gate("work").model(answersFirst(parts...))
		r.cfg.Approve = agent.ApproveDeny
		r.cfg.Limits.MaxToolCalls = len(parts)
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Errorf("outcome %+v, error %+v", o, o.Error)
		}
		if res := results(r.whole(run.ID)); len(res) != len(parts) || res[0].ErrorType != event.ErrorRejected {
			t.Errorf("%d results, the first is %+v", len(res), res[0])
		}
	})
}

// Each answer is compared with what still waits.
func TestHundredsOfQuestionsAtOnceTakeLittleMemory(t *testing.T) {
	parts := make(llm.Parts, 256)
	for i := range parts {
		parts[i] = llm.ToolCall{Name: "work", Args: json.RawMessage(`{}`)}
	}
	r := newRig(t).tools(toolFunc("work", func(context.Context) (string, error) { return "worked", nil })).gate("work").model(answersFirst(parts...)).
		asker(func(context.Context, event.Question) (event.Resolution, error) {
			return event.Resolution{Kind: event.ApprovalRejected, Approver: "ann", Reason: "no"}, nil
		})
	r.cfg.Limits.MaxToolCalls = len(parts)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run := r.start(t.Context())
	if o := outcome(t, run); !o.OK {
		t.Errorf("outcome %+v, error %+v", o, o.Error)
	}
	runtime.ReadMemStats(&after)
	const most = 30 << 20
	if took := after.TotalAlloc - before.TotalAlloc; took > most {
		t.Errorf("%d questions took %d MiB", len(parts), took>>20)
	}
	if res := results(r.whole(run.ID)); len(res) != len(parts) || res[0].ErrorType != event.ErrorRejected {
		t.Errorf("%d results, the first is %+v", len(res), res[0])
	}
}
