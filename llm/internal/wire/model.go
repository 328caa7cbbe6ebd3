package wire

import (
	"cmp"
	"context"
	"time"

	"github.com/pawlrun/pawl/llm"
)

type requestKey struct{}

// For returns a context with the properties of a request that the exchange needs: the
// model, and how long its stream may send nothing.
func For(ctx context.Context, req *llm.Request) context.Context {
	return context.WithValue(ctx, requestKey{}, about{model: req.Model, stall: req.StallTimeout})
}

type about struct {
	model string
	stall time.Duration
}

// ModelOf returns the model that [For] stored, "" for none.
func ModelOf(ctx context.Context) string {
	a, _ := ctx.Value(requestKey{}).(about)
	return a.model
}

func stallTimeout(ctx context.Context) time.Duration {
	a, _ := ctx.Value(requestKey{}).(about)
	return cmp.Or(a.stall, llm.DefaultStallTimeout)
}
