package engine

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// treePatience bounds the look at the workspace after a call: what takes longer
// is not worth knowing.
const treePatience = time.Second

// withTree adds to a call's settlement what the workspace holds now, where the
// call may have changed it and somebody can tell.
func (env *environment) withTree(ctx context.Context, t *tool.Tool, a machine.RunTool, settled []event.Data) []event.Data {
	e, ok := settled[0].(event.ToolResult)
	if !ok || env.Tree == nil || t.ReadOnly || a.Facts == nil || a.Facts.Risk == event.RiskRead || ctx.Err() != nil {
		return settled
	}
	if e.Tree = env.tree(ctx, treePatience); e.Tree == "" {
		return settled
	}
	return []event.Data{e}
}

// observe completes an iteration by what the workspace holds now. It may take longer:
// what an iteration changed decides whether the loop is stuck.
func (env *environment) observe(ctx context.Context, a machine.Observe) event.Data {
	a.Iteration.Tree = env.tree(ctx, 10*treePatience)
	return a.Iteration
}

// tree identifies what the workspace holds, empty where that cannot be said in time.
func (env *environment) tree(ctx context.Context, patience time.Duration) string {
	if env.Tree == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := guard(func() (string, error) { return env.Tree(ctx) }, adapterPanic)
	if err != nil {
		return ""
	}
	return state
}
