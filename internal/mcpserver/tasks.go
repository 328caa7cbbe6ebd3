package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

const (
	// tasksExtension is the extension in which a call returns a task instead of a
	// result.
	tasksExtension = "io.modelcontextprotocol/tasks"
	// statelessVersion is the first version of the protocol without sessions.
	statelessVersion = "2026-07-28"
	// pollMillis is the recommended interval for polling a task.
	pollMillis = 1000
)

// task represents a run to a client of tasks. The task's id is that of the run.
type task struct {
	mcp.ResultBase
	ResultType    string              `json:"resultType"`
	TaskID        string              `json:"taskId"`
	Status        string              `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     time.Time           `json:"createdAt"`
	LastUpdatedAt time.Time           `json:"lastUpdatedAt"`
	TTL           *int64              `json:"ttlMs"`
	PollInterval  int64               `json:"pollIntervalMs"`
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result        any                 `json:"result,omitempty"`
}

// acknowledged is an empty result.
type acknowledged struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// taskParams holds the parameters of requests about a task.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string               `json:"taskId"`
	InputResponses mcp.InputResponseMap `json:"inputResponses,omitempty"`
}

// capabilities returns the capabilities of the client that made a request about a task.
func (p *taskParams) capabilities() *mcp.ClientCapabilities {
	var c mcp.ClientCapabilities
	if text, err := json.Marshal(p.Meta[mcp.MetaKeyClientCapabilities]); err != nil || json.Unmarshal(text, &c) != nil {
		return nil
	}
	return &c
}

// hasTasks reports whether a client supports tasks.
func hasTasks(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, has := c.Extensions[tasksExtension]
	return has
}

// asTask answers a call with a task if the client supports tasks. The run is in the
// journal before the task is returned.
func (s *Server) asTask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, is := req.(*mcp.CallToolRequest)
		if !is || !hasTasks(call.ClientCapabilities()) || s.offerOf(call.Params.Name) == nil || call.Params.RequestState != "" {
			return next(ctx, method, req)
		}
		row, _, err := s.begin(ctx, call)
		if err != nil {
			return failed(err), nil
		}
		t := &task{
			ResultType: "task", TaskID: row.ID, Status: "working", CreatedAt: row.Created, LastUpdatedAt: row.Updated, PollInterval: pollMillis,
		}
		t.Meta = s.meta(ctx, row.ID)
		return t, nil
	}
}

func (s *Server) addTasks() error {
	for method, answer := range map[string]func(context.Context, *taskParams, journal.Run) (mcp.Result, error){
		"tasks/get": s.getTask, "tasks/update": s.updateTask, "tasks/cancel": s.cancelTask,
	} {
		err := mcp.AddReceivingCustomMethod(s.protocol, method, func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (mcp.Result, error) {
			if p == nil {
				p = &taskParams{}
			}
			if !hasTasks(p.capabilities()) {
				return nil, missingTasks()
			}
			row, err := s.Options.Server.RunRow(ctx, p.TaskID)
			if err != nil || row.Parent != "" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no task " + p.TaskID}
			}
			return answer(ctx, p, row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// missingTasks returns the error for a task request by a client without tasks.
func missingTasks() error {
	const code = -32021
	return &jsonrpc.Error{
		Code: code, Message: "the client has not declared the extension " + tasksExtension,
		Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
	}
}

// getTask returns the current state of a run.
func (s *Server) getTask(ctx context.Context, p *taskParams, row journal.Run) (mcp.Result, error) {
	// A client may read what its role allows over HTTP.
	if err := s.ask(ctx, server.Request{Method: http.MethodGet, Path: "/v1/runs/" + row.ID}, nil); err != nil {
		return nil, err
	}
	t := &task{
		ResultType: "complete", TaskID: row.ID, Status: "working", CreatedAt: row.Created, LastUpdatedAt: row.Updated, PollInterval: pollMillis,
	}
	switch row.State {
	case journal.Ended:
		var o event.Outcome
		if err := json.Unmarshal(row.Outcome, &o); err != nil {
			return nil, err
		}
		if t.Status = "completed"; o.Status == event.StatusCancelled {
			t.Status = "cancelled"
			break
		}
		result := s.ended(ctx, row)
		if len(result.Content) == 0 {
			result.Content = []mcp.Content{}
		}
		t.Result = result
	case journal.Parked, journal.Paused:
		questions, err := s.questions(ctx, row)
		if err != nil {
			return nil, err
		}
		if t.StatusMessage = textOf(s.parked(row, questions)); len(questions) > 0 && s.mayElicit(ctx, p.capabilities()) {
			t.Status, t.InputRequests = "input_required", requests(questions)
		}
	}
	t.Meta = s.meta(ctx, row.ID)
	return t, nil
}

// textOf returns the text of a result, if it has one.
func textOf(r *mcp.CallToolResult) string {
	text, _ := r.Content[0].(*mcp.TextContent)
	return text.Text
}

// updateTask sends answers to a run's questions.
func (s *Server) updateTask(ctx context.Context, p *taskParams, row journal.Run) (mcp.Result, error) {
	_, _, err := s.answer(ctx, row, p.InputResponses)
	return &acknowledged{ResultType: "complete"}, err
}

// cancelTask parks or cancels a run.
func (s *Server) cancelTask(ctx context.Context, _ *taskParams, row journal.Run) (mcp.Result, error) {
	_, err := s.stop(ctx, row.ID)
	return &acknowledged{ResultType: "complete"}, err
}
