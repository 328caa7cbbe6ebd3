package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/engine/replay"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// A missing page brought no untrusted text, so no replay fences it.
func TestARecordedResultIsAsTrustedAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		fetch := argsTool("fetch", func(string) {})
		fetch.Labels = &event.Labels{Untrusted: true, Private: true}
		fetch.Run = func(context.Context, tool.Call) (tool.Result, error) {
			if fetched++; fetched == 1 {
				return tool.Result{}, &tool.Error{Type: event.ErrorNotFound, Message: "there is no such page", NothingCame: true}
			}
			return tool.Result{Output: "a page"}, nil
		}
		turns := []scripted.Turn{{ToolCalls: calls("fetch", `{"to":"a"}`)}, {ToolCalls: calls("fetch", `{"to":"b"}`)}, {Text: "done"}}
		r := newRig(t).tools(fetch).turns(turns...)
		var failures []error
		r.Engine = engine.New(r.store, newMachine, engine.Options{Observers: []perform.Observer{{
			Tool: func(ctx context.Context, _ perform.ToolCall, next func(context.Context) (tool.Result, error)) (tool.Result, error) {
				result, err := next(ctx)
				failures = append(failures, err)
				return result, err
			},
		}}})
		run := r.start(t.Context())
		if o := outcome(t, run); !o.OK {
			t.Fatalf("outcome %+v", o)
		}
		tools, err := replay.Tools(t.Context(), r.Past(), run.ID, r.env.Tools)
		if err != nil {
			t.Fatal(err)
		}
		r.env.Tools = tools
		again := r.turns(turns...).start(t.Context())
		if o := outcome(t, again); !o.OK || fetched != 2 {
			t.Fatalf("outcome %+v, %d pages", o, fetched)
		}
		type came struct {
			Output                      string
			IsError, Untrusted, Private bool
		}
		of := func(id string) (all []came) {
			for _, res := range results(r.whole(id)) {
				all = append(all, came{res.Output, res.IsError, res.Untrusted, res.Private})
			}
			return all
		}
		want := of(run.ID)
		if want[0].Untrusted || !want[1].Untrusted {
			t.Fatalf("results %+v", want)
		}
		if diff := cmp.Diff(want, of(again.ID)); diff != "" {
			t.Errorf("results (-run +replay):\n%s", diff)
		}
		if len(failures) != 4 || failures[2] != nil || failures[3] != nil {
			t.Errorf("observers are told of %v", failures)
		}
	})
}
