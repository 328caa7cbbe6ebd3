package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// extensionTasks is the extension by which a server answers a call with a task, whose
// result the client polls for.
const extensionTasks = "io.modelcontextprotocol/tasks"

const (
	methodGet    = "tasks/get"
	methodUpdate = "tasks/update"
)

// metaTask is the member of _meta in which a result carries its task. The library drops
// unknown members of a result, so the transports move the task there.
const metaTask = "io.github.pawlrun/task"

// Limits on waiting for a task: the poll interval, how long the process waits, and how
// many consecutive polls may fail.
const (
	defaultPoll = time.Second
	minPoll     = 20 * time.Millisecond
	maxPoll     = 5 * time.Minute
	maxUnasked  = 3
)

// task is a task as reported by its server.
type task struct {
	sdk.ResultBase
	ID       string              `json:"taskId"`
	Status   string              `json:"status,omitempty"`
	Message  string              `json:"statusMessage,omitempty"`
	PollMs   int64               `json:"pollIntervalMs,omitempty"`
	Requests sdk.InputRequestMap `json:"inputRequests,omitempty"`
	Result   json.RawMessage     `json:"result,omitempty"`
	Error    *jsonrpc.Error      `json:"error,omitempty"`
}

type taskParams struct {
	sdk.ParamsBase
	ID        string               `json:"taskId"`
	Responses sdk.InputResponseMap `json:"inputResponses,omitempty"`
}

// acknowledged is a result without content.
type acknowledged struct{ sdk.ResultBase }

func addTasks(c *sdk.Client) error {
	return errors.Join(sdk.AddSendingCustomMethod[*taskParams, *task](c, methodGet), sdk.AddSendingCustomMethod[*taskParams, *acknowledged](c, methodUpdate))
}

// kept is the record of a task in the journal.
type kept struct {
	ID string `json:"taskId"`
}

// taskOf returns the task in a result, nil for none.
func taskOf(res *sdk.CallToolResult) *task {
	text, err := json.Marshal(res.Meta[metaTask])
	var t task
	if err != nil || json.Unmarshal(text, &t) != nil || t.ID == "" {
		return nil
	}
	return &t
}

// withTask returns a message with the task of its result moved to _meta.
func withTask(text []byte) []byte {
	if !bytes.Contains(text, []byte(`"taskId"`)) {
		return text
	}
	var m, result map[string]json.RawMessage
	at := bytes.IndexByte(text, '{') // after the prefix of an event stream's data
	if at < 0 || json.Unmarshal(text[at:], &m) != nil || json.Unmarshal(m["result"], &result) != nil || string(result["resultType"]) != `"task"` {
		return text
	}
	meta := map[string]json.RawMessage{}
	if json.Unmarshal(result["_meta"], &meta) != nil && result["_meta"] != nil {
		return text
	}
	meta[metaTask] = m["result"]
	inner, err := json.Marshal(map[string]any{"_meta": meta, "content": []any{}})
	if err != nil {
		return text
	}
	m["result"] = inner
	whole, err := json.Marshal(m)
	if err != nil {
		return text
	}
	end := text[len(bytes.TrimRight(text, "\r\n")):]
	return slices.Concat(text[:at], whole, end)
}

// tasking is the body of an answer that moves the tasks in its lines.
type tasking struct {
	io.Closer
	in   *bufio.Reader
	rest []byte
	// cut reports that the last line was incomplete, so that its rest is passed on
	// unchanged.
	cut bool
}

// Read implements [io.Reader].
func (t *tasking) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		line, err := t.in.ReadSlice('\n')
		was := t.cut
		t.cut = errors.Is(err, bufio.ErrBufferFull)
		if len(line) == 0 {
			return 0, err
		}
		t.rest = bytes.Clone(line)
		if !was && !t.cut {
			t.rest = withTask(t.rest)
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// begun stores the task of a call in the journal, and waits for it.
func (r remote) begun(ctx context.Context, c tool.Call, x exchange, t *task) (tool.Result, error) {
	text, err := json.Marshal(kept{ID: t.ID})
	if err == nil && c.Run != nil {
		err = c.Run.Keep(ctx, text)
	}
	if err != nil {
		return tool.Result{}, &tool.Error{
			Type: event.ErrorInDoubt, Err: err, NothingCame: true,
			Message: fmt.Sprintf("the MCP server %s does the call as a task, which could not be journalled: %v", r.server.o.Server, err),
		}
	}
	return r.await(ctx, x, t)
}

// await polls a task until it is done. It sends no call.
func (r remote) await(ctx context.Context, x exchange, t *task) (tool.Result, error) {
	for failed := 0; ; {
		if res, err := r.settled(x, t); res != nil || err != nil {
			if err != nil {
				return tool.Result{}, err
			}
			return r.result(res)
		}
		wait := max(cmp.Or(time.Duration(t.PollMs)*time.Millisecond, defaultPoll), minPoll)
		if wait > maxPoll {
			return tool.Result{}, &tool.NotYet{Wait: wait}
		}
		if t.Status != "" { // a task of an earlier attempt is polled at once
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return tool.Result{}, context.Cause(ctx)
			}
		}
		now, err := r.getTask(ctx, x, t.ID)
		if asked := r.server.login(x, err); asked != nil {
			return tool.Result{}, asked
		}
		answered, says := errors.AsType[*jsonrpc.Error](err)
		switch {
		case err == nil:
			t, failed, x.Answers = now, 0, nil
		case ctx.Err() != nil:
			return tool.Result{}, context.Cause(ctx)
		case says && answered.Code != codeClientClosing && answered.Code != codeServerClosing && answered.Code != codeRejected:
			return tool.Result{}, &tool.Error{
				Type: event.ErrorInDoubt, Err: err, NothingCame: true,
				Message: fmt.Sprintf("the MCP server %s does not say what became of task %s (%s), so it is not known whether the call took effect; it was not repeated", r.server.o.Server, t.ID, answered.Message),
			}
		default:
			if failed++; failed == maxUnasked { // the task may survive the failure
				return tool.Result{}, &tool.NotYet{Wait: maxPoll + time.Minute}
			}
			t = &task{ID: t.ID, Status: "working", PollMs: defaultPoll.Milliseconds()}
		}
	}
}

// getTask polls a task once, after sending a person's answers.
func (r remote) getTask(ctx context.Context, x exchange, id string) (*task, error) {
	open, err := r.server.ready(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.server.o.Timeout)
	defer cancel()
	responses, err := x.responses(r.server.o.roots())
	if err != nil {
		return nil, err
	}
	if responses != nil {
		if _, err := sdk.CallCustomMethod[*taskParams, *acknowledged](ctx, open.client, methodUpdate, &taskParams{ID: id, Responses: responses}); err != nil {
			return nil, open.noted(err)
		}
	}
	t, err := sdk.CallCustomMethod[*taskParams, *task](ctx, open.client, methodGet, &taskParams{ID: id})
	return t, open.noted(err)
}

// noted returns an error, and records if it means that the session is gone.
func (s *session) noted(err error) error {
	if errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing) {
		s.broken.Store(true)
	}
	return err
}

// settled returns the result of a finished task, nil for one in progress. A task that
// asks a person ends the attempt.
func (r remote) settled(x exchange, t *task) (*sdk.CallToolResult, error) {
	name := r.server.o.Server
	switch t.Status {
	case "completed":
		var res sdk.CallToolResult
		if err := json.Unmarshal(t.Result, &res); err != nil {
			return nil, &tool.Error{Type: event.ErrorTool, Err: err, NothingCame: true, Message: fmt.Sprintf("the result of task %s of the MCP server %s cannot be read: %v", t.ID, name, err)}
		}
		return &res, nil
	case "failed", "cancelled":
		why := t.Message
		if t.Error != nil {
			why = t.Error.Message
		}
		return nil, &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("task %s of the MCP server %s has %s: %s", t.ID, name, t.Status, why)}
	case "input_required":
		return nil, r.asks(x, t)
	}
	return nil, nil
}

// asks asks a person the unanswered questions of a task.
func (r remote) asks(x exchange, t *task) error {
	x.Left = nil
	for _, name := range slices.Sorted(maps.Keys(t.Requests)) {
		p, is := t.Requests[name].(*sdk.ElicitParams)
		if !is {
			return r.server.noSampling()
		}
		q, err := questionOf(name, p)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(x.Answers, func(a answer) bool { return a.Name == name && a.Digest == q.Digest }) {
			x.Left = append(x.Left, q)
		}
	}
	x.Answers = nil
	return x.next()
}
