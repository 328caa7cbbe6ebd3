package mcpserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/follow"
	"github.com/pawlrun/pawl/journal"
)

// wait is a call that waits for its run.
type wait struct {
	*Server
	ctx context.Context
	req *mcp.CallToolRequest
	run string
	// seen counts the events of the run and its descendants.
	seen float64
	// stood is the number of the event that last parked or ended the run, -1 for none.
	stood int64
}

// again answers a repeated call that contains answers to the run's questions. The error
// rejects a state that is not of a call of this tool.
func (w *wait) again(run string) (*mcp.CallToolResult, error) {
	row, err := w.Options.Server.RunRow(w.ctx, run)
	if err != nil || row.Parent != "" || row.Name != w.req.Params.Name {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("requestState is %q, which is no run of %s", run, w.req.Params.Name)}
	}
	decided, dismissed, err := w.answer(w.ctx, row, w.req.Params.InputResponses)
	switch {
	case err != nil:
		return failed(err), nil
	case dismissed:
		questions, err := w.questions(w.ctx, row)
		if err != nil {
			return failed(err), nil
		}
		return w.parked(row, questions), nil
	case !decided: // the questions were answered before, by the same call for one
		return w.result(run, -1), nil
	}
	return w.result(run, row.Seq), nil
}

// result waits until the run has a result, or cannot continue, after the event with the
// number after, and returns the result of the call.
func (w *wait) result(run string, after int64) *mcp.CallToolResult {
	w.run = run
	sub, err := w.Options.Server.Follow(w.ctx, follow.Query{Run: w.run, Tree: true})
	if err != nil {
		return failed(err)
	}
	defer sub.Close()
	for {
		row, err := w.untilIdle(sub, after)
		if w.ctx.Err() != nil {
			return w.left()
		}
		if err != nil {
			return failed(err)
		}
		if row.State == journal.Ended {
			return w.ended(w.ctx, row)
		}
		questions, err := w.questions(w.ctx, row)
		if err != nil {
			return failed(err)
		}
		if len(questions) == 0 || !w.elicits(w.ctx, w.req) {
			return w.parked(row, questions)
		}
		if manyRoundTrips(w.req) {
			return &mcp.CallToolResult{InputRequests: requests(questions), RequestState: w.run}
		}
		decided, err := w.elicit(questions)
		if w.ctx.Err() != nil {
			return w.left()
		}
		if err != nil {
			return failed(err)
		}
		if !decided {
			return w.parked(row, questions)
		}
		after = w.stood
	}
}

// untilIdle waits until an event after the given number ends the run or makes it wait
// for a command, or until ctx ends. It reports the run's progress to the client.
func (w *wait) untilIdle(sub *follow.Subscription, after int64) (journal.Run, error) {
	for {
		events, err := sub.Poll(w.ctx)
		if err != nil {
			return journal.Run{}, err
		}
		for i := range events {
			w.take(&events[i])
		}
		if sub.More() {
			continue
		}
		row, err := w.Options.Server.RunRow(w.ctx, w.run)
		if err != nil || w.stood > after && slices.Contains([]journal.State{journal.Parked, journal.Paused, journal.Ended}, row.State) {
			return row, err
		}
		select {
		case <-sub.Wake():
		case <-w.ctx.Done():
			return row, w.ctx.Err()
		}
	}
}

// take updates the run's state with an event, and reports the event to a client that
// requested progress.
func (w *wait) take(e *follow.Event) {
	switch e.Data.(type) {
	case event.RunParked, event.RunCompleted:
		if e.Run == w.run {
			w.stood = e.Seq
		}
	}
	w.seen++
	text := progressText(e.Data)
	if token := w.req.Params.GetProgressToken(); token != nil && text != "" {
		// The context also ends when the client disconnects.
		_ = w.req.Session.NotifyProgress(w.ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: w.seen, Message: text})
	}
}

// progressText describes an event in a few words; it is empty for an event that is not
// progress.
func progressText(d event.Data) string {
	switch d := d.(type) {
	case event.ModelRequested:
		return "asks " + d.Model
	case event.ToolCall:
		return "calls " + d.Tool
	case event.ToolResult:
		return d.Tool + " has ended"
	case event.ToolPendingApproval:
		return d.Tool + " waits for a decision"
	case event.StepStarted:
		return "begins the step " + d.Step
	case event.ChildStarted:
		return "starts run " + d.Child
	}
	return ""
}

// left returns the result of a call that its client no longer waits for. If the client
// cancelled the call, the run is parked or cancelled; if the client disconnected, the
// run continues.
func (w *wait) left() *mcp.CallToolResult {
	ctx := context.WithoutCancel(w.ctx)
	if context.Cause(w.ctx) != context.Canceled { // the connection was lost
		return textResult("The connection was lost. Run "+w.run+" goes on.", true)
	}
	r, err := w.stop(ctx, w.run)
	if err != nil {
		return failed(fmt.Errorf("the call was cancelled, and run %s goes on: %w", w.run, err))
	}
	return r
}
