package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/anthropic"
)

// called is a model that looks at what it is called with.
type called struct {
	*worker
}

func (c called) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if req.Memo != nil {
		c.t.Error("the driver's memo is lent to a call")
	}
	return c.worker.Generate(ctx, req)
}

// A memo is not safe for concurrent use. A call lasts while the driver continues, and a
// model of another author may call several others at once, each of which encodes.
func TestWhatARunRemembersOfItsRequestsIsTheDriversAlone(t *testing.T) {
	for name, model := range map[string]func(called) llm.Model{
		"a model that says its bytes": func(c called) llm.Model { return c },
		"a model that does not":       func(c called) llm.Model { return struct{ llm.Model }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := long(t, 6, compact.Settings{Window: 100_000})
				worker := &worker{t: t, cycles: 6, Encoder: anthropic.New(anthropic.Options{APIKey: "none"})}
				if o := outcome(t, r.model(model(called{worker})).start(t.Context())); !o.OK {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}
