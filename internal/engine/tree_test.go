package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm/scripted"
)

func TestTheTreeIsLookedAtAfterCallsThatMayHaveChangedIt(t *testing.T) {
	for name, c := range map[string]struct {
		tree func(context.Context) (string, error)
		want string
	}{
		"told":               {func(context.Context) (string, error) { return "state", nil }, "state"},
		"not to be told":     {func(context.Context) (string, error) { return "half", errors.New("too large") }, ""},
		"broken":             {func(context.Context) (string, error) { panic("oops") }, ""},
		"slow, and given up": {func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, ""},
		"no workspace":       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				write := numbered("write", nil)
				write.Facts = func(json.RawMessage) event.Facts { return event.Facts{Risk: event.RiskWrite} }
				failed := numbered("failed", errors.New("broken"))
				failed.Facts = write.Facts
				look := numbered("look", nil)
				look.Facts = func(json.RawMessage) event.Facts { return event.Facts{Risk: event.RiskRead} }
				r := newRig(t).tools(write, failed, look, reading(numbered("read", nil)), numbered("unknown", nil)).turns(
					scripted.Turn{ToolCalls: calls("write", "{}", "failed", "{}", "look", "{}", "read", "{}", "unknown", "{}")},
					scripted.Turn{Text: "done"})
				r.env.Tree = c.tree
				run := r.start(t.Context())
				outcome(t, run)
				for i, d := range results(r.whole(run.ID)) {
					want := c.want
					if i > 1 {
						want = "" // what follows cannot have changed a file, or it is unknown
					}
					if d.Tree != want {
						t.Errorf("%s: the tree is %q, want %q", d.Tool, d.Tree, want)
					}
				}
			})
		})
	}
}
