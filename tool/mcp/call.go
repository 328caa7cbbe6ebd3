package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// remote is a tool of a server.
type remote struct {
	server *Server
	name   string
	send   sender
	// output is the schema of structured results, nil for none.
	output *tool.Schema
}

// run makes one attempt at a call, and reports changes of the server.
func (r remote) run(ctx context.Context, c tool.Call) (tool.Result, error) {
	out, err := r.perform(ctx, c)
	out.Server = r.server.takeNews()
	return out, err
}

// maxSampled bounds how often a call is continued with the answers of a model.
const maxSampled = 10

// perform makes one attempt: it sends one tools/call, and one more for each result that
// asks for the roots or for the answers of a model.
func (r remote) perform(ctx context.Context, c tool.Call) (tool.Result, error) {
	x, err := continued(c.Input)
	if err == nil {
		err = r.next(ctx, &x, c.Run) // the last result asks more; no call is sent
	}
	if err != nil {
		return tool.Result{}, err
	}
	if c.Task != nil {
		var t kept
		if err := json.Unmarshal(c.Task, &t); err != nil {
			return tool.Result{}, fmt.Errorf("what the journal keeps of a task: %w", err)
		}
		return r.await(ctx, x, &task{ID: t.ID})
	}
	for again := 0; ; again++ {
		res, sent, err := r.attempt(ctx, c, x)
		switch {
		case err == nil && taskOf(res.CallToolResult) != nil:
			return r.begun(ctx, c, x, taskOf(res.CallToolResult))
		case err == nil && !res.needs:
			return r.result(res.CallToolResult)
		case err == nil:
			if err := r.needs(ctx, &x, res.CallToolResult, c.Run); err != nil {
				return tool.Result{}, err
			}
			if again == 0 || x.sampled() && again < maxSampled {
				continue
			}
			err = &tool.Error{Type: event.ErrorTool, Message: "the MCP server asks for nothing but the roots, or the answers of a model, again and again", NothingCame: true}
		case errors.As(err, new(*tool.InputRequired)):
			return tool.Result{}, err
		}
		if asked := r.server.login(x, err); asked != nil {
			return tool.Result{}, asked
		}
		if asked := x.pages(err); asked != nil {
			return tool.Result{}, asked
		}
		if sent || again > 0 || ctx.Err() != nil || errors.As(err, new(*StartError)) || errors.As(err, new(*tool.Error)) {
			return tool.Result{}, r.failure(err, sent)
		}
		// No byte of the request was written, so a new session may send it.
	}
}

func (r remote) attempt(ctx context.Context, c tool.Call, x exchange) (res reply, sent bool, err error) {
	s := r.server
	open, err := s.ready(ctx)
	if err != nil {
		return reply{}, false, err
	}
	if now := s.change(r.name); now != nil && !approved(now, c.Facts) {
		return reply{}, false, s.changedError(now)
	}
	ctx, wrote := withSent(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.o.Timeout, func() { cancel(errSilent) })
	defer silence.Stop()
	token := fmt.Sprintf("%s/%d", c.ID, c.Attempt)
	defer s.onProgress(token, func(p *sdk.ProgressNotificationParams) {
		silence.Reset(s.o.Timeout)
		if c.Run != nil {
			c.Run.Report(p.Progress, p.Total, clean(p.Message, maxShownLine))
		}
	})()
	params := &sdk.CallToolParams{Name: r.name, Arguments: c.Args, Meta: sdk.Meta{KeyMeta: c.Key}}
	params.SetProgressToken(token)
	params.RequestState = x.State
	if params.InputResponses, err = x.responses(s.o.roots()); err != nil {
		return reply{}, false, err
	}
	t := newTalk(ctx, c.Run, x, func(while bool) {
		if while {
			silence.Stop()
		} else {
			silence.Reset(s.o.Timeout)
		}
	})
	defer s.talking(t)()

	type answer struct {
		res reply
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := r.send(ctx, open.client, params)
		answers <- answer{res, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			a.err = context.Cause(ctx)
		}
		if errors.Is(a.err, sdk.ErrConnectionClosed) || errors.Is(a.err, sdk.ErrSessionMissing) {
			open.broken.Store(true)
		}
		if a.err != nil && !wrote.Load() && open.program != nil {
			select {
			case <-open.ended: // a session that cannot be written to ends
			case <-ctx.Done():
			}
		}
		return a.res, wrote.Load(), a.err
	case err := <-t.asked:
		cancel(errAsks)
		return reply{}, true, err
	case <-ctx.Done():
		if err := t.open(); err != nil {
			return reply{}, true, err
		}
		// The notification that cancels the call is sent concurrently.
		return reply{}, true, context.Cause(ctx)
	}
}

// approved reports whether a call was judged by the current definition of its tool.
func approved(now *event.ChangedTool, by *event.Facts) bool {
	return now.Digest != "" && by != nil && by.Redefined != nil && by.Redefined.Digest == now.Digest
}

// The reasons for cancelling a call.
var (
	errSilent = errors.New("no answer and no progress")
	errAsks   = errors.New("a person is asked for input first")
)

// The codes of the library's own errors, which have the form of a server's.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// failure returns why a call has no result, in words for the model.
func (r remote) failure(err error, sent bool) error {
	name := r.server.o.Server
	if answered, ok := errors.AsType[*jsonrpc.Error](err); ok && sent {
		switch answered.Code {
		case codeClientClosing, codeServerClosing, codeRejected:
		default:
			return &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("the MCP server %s refused the call: %s", name, answered.Message), Err: err}
		}
	}
	var own *tool.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, errSilent):
		return &tool.Error{
			Type: event.ErrorTimeout, NothingCame: true, Err: err,
			Message: fmt.Sprintf("the MCP server %s sent no answer and no progress for %s, so the call was cancelled; it is not known whether it took effect", name, r.server.o.Timeout),
		}
	case errors.Is(err, sdk.ErrSessionMissing):
		return tool.Transient(&tool.Error{
			Type: event.ErrorTool, Err: err, NothingCame: true,
			Message: fmt.Sprintf("the MCP server %s did not run the call, because it had ended the session; the next call begins a new one", name),
		})
	case !sent:
		return tool.Transient(&tool.Error{
			Type: event.ErrorUnavailable, Err: err, NothingCame: true,
			Message: fmt.Sprintf("the call was not sent: the MCP server %s cannot be reached: %v", name, err),
		})
	}
	return tool.Transient(&tool.Error{
		Type: event.ErrorInDoubt, Err: err, NothingCame: true,
		Message: fmt.Sprintf("the MCP server %s did not answer (%v), so it is not known whether the call took effect; it was not repeated", name, err),
	})
}
