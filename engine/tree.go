package engine

import (
	"context"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/machine"
	"github.com/pawlrun/pawl/tool"
)

// treePatience bounds the look at the workspace after a call: what takes longer
// is not worth knowing.
const treePatience = time.Second

// withTree adds to a call's settlement what the workspace holds now, where the
// call may have changed it and somebody can tell.
func (d *driver) withTree(ctx context.Context, t *tool.Tool, a machine.RunTool, settled []event.Data) []event.Data {
	e, ok := settled[0].(event.ToolResult)
	if !ok || d.env.Tree == nil || t.ReadOnly || a.Facts == nil || a.Facts.Risk == event.RiskRead || ctx.Err() != nil {
		return settled
	}
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	state, err := guard(func() (string, error) { return d.env.Tree(ctx) }, adapterPanic)
	if err != nil {
		return settled
	}
	e.Tree = state
	return []event.Data{e}
}
