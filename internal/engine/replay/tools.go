package replay

import (
	"context"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/tool"
)

// Tools returns the tools of a set without effects: the n-th call of a tool with the
// same arguments returns the n-th recorded result. A call without a recorded result
// returns an error.
func Tools(ctx context.Context, past drive.Past, run string, tools *tool.Set) (*tool.Set, error) {
	recorded := &recordedResults{byDigest: map[string][]tool.Result{}}
	content := drive.NewBlobs(past.Store)
	digests, started := map[string]string{}, map[string]bool{}
	err := past.Refold(ctx, run, func(_ machine.Machine, ev *event.Event) error {
		switch d := ev.Data.(type) {
		case event.ToolCall:
			digests[d.CallID] = d.Digest
		case event.ToolStarted:
			started[d.CallID] = true
		case event.ToolResult:
			if !started[d.CallID] {
				return nil
			}
			if d.Blob != "" {
				whole, err := content.Load(ctx, d.Blob)
				if err != nil {
					return err
				}
				d.Output = string(whole)
			}
			recorded.add(digests[d.CallID], d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay: recorded tools of run %s: %w", run, err)
	}
	var all []tool.Tool
	for _, def := range tools.Defs() {
		t, _ := tools.Lookup(def.Name)
		t.Agent = false // the record contains the child's result
		t.Run = func(_ context.Context, c tool.Call) (tool.Result, error) { return recorded.next(run, t.Name, c) }
		all = append(all, t)
	}
	return tool.NewSet(all...)
}

// recordedResults is safe for concurrent use.
type recordedResults struct {
	mu       sync.Mutex
	byDigest map[string][]tool.Result
}

func (r *recordedResults) add(digest string, d event.ToolResult) {
	r.byDigest[digest] = append(r.byDigest[digest], tool.Result{
		Output: d.Output, IsError: d.IsError, ErrorType: d.ErrorType, ExitCode: d.ExitCode,
		Media: d.Media, Tools: d.Tools, Untrusted: d.Untrusted, Private: d.Private, EndsRun: d.EndsRun, Truncated: d.Truncated && d.Blob == "", Pin: d.Pin,
	})
}

func (r *recordedResults) next(run, name string, c tool.Call) (tool.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := tool.Digest(name, c.Args, "")
	left := r.byDigest[digest]
	if len(left) == 0 {
		return tool.Result{}, &tool.Error{
			Type: event.ErrorNotFound, Message: "run " + run + " did not record this call, so nothing was done", NothingCame: true,
		}
	}
	r.byDigest[digest] = left[1:]
	return left[0], drive.ErrRecorded
}
