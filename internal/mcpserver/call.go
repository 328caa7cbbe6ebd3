package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// Members of _meta that Pawl reads and writes.
const (
	// KeyMeta is the member of a call's _meta with the idempotency key: two calls with
	// the same key share one run.
	KeyMeta = "io.github.pawlrun/idempotencyKey"
	// RunMeta is the member of a result's _meta that names the run.
	RunMeta = "io.github.pawlrun/run"
	// traceMeta is the trace of a request, as in the header of the same name.
	traceMeta = "traceparent"
)

// call answers a tool call: it starts a run, or finds the run of an earlier call with
// the same key, and waits for the run.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	w := wait{Server: s, ctx: ctx, req: req, stood: -1}
	if run := req.Params.RequestState; run != "" {
		return w.again(run)
	}
	row, after, err := s.begin(ctx, req)
	if err != nil {
		return failed(err), nil
	}
	return w.result(row.ID, after), nil
}

// begin starts the run of a call, or returns its existing run. Events up to the number
// after do not answer the call.
func (s *Server) begin(ctx context.Context, req *mcp.CallToolRequest) (row journal.Run, after int64, err error) {
	o := s.offerOf(req.Params.Name)
	if o == nil {
		return row, 0, fmt.Errorf("there is no tool %s any more", req.Params.Name)
	}
	body, err := o.startBody(req.Params.Arguments)
	if err != nil {
		return row, 0, err
	}
	header := http.Header{}
	if key, given := req.Params.Meta[KeyMeta]; given {
		text, isText := key.(string)
		if !isText || text == "" {
			return row, 0, fmt.Errorf("%s is %v; give a text of 1 to 250 visible characters", KeyMeta, key)
		}
		header.Set("Idempotency-Key", "mcp:"+text)
	}
	if parent := traceOf(ctx); parent != "" {
		header.Set("Traceparent", parent)
	}
	for {
		err = s.ask(ctx, server.Request{Method: http.MethodPost, Path: "/v1/runs", Body: body, Header: header}, &row)
		if !isProblem(err, "not-answered-yet") {
			break
		}
		select { // another call with the same key is about to start the run
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return row, 0, ctx.Err()
		}
	}
	if err != nil {
		return row, 0, err
	}
	// A repeated request returns the run as it was in the first response.
	if row, err = s.Options.Server.RunRow(ctx, row.ID); err != nil {
		return row, 0, err
	}
	after, err = s.continueRun(ctx, row)
	return row, after, err
}

// continueRun continues a run of an earlier call that was parked when the call was
// cancelled or the server closed. It returns the number of the last event before it.
func (s *Server) continueRun(ctx context.Context, row journal.Run) (after int64, err error) {
	switch {
	case row.State == journal.Parked && row.Detail == string(event.ParkInterrupted):
	case row.State == journal.Paused:
		by, err := s.Options.Server.PausedBy(ctx, row)
		if err != nil || by != callerOf(ctx).By() {
			return -1, err
		}
	default:
		return -1, nil
	}
	err = s.ask(ctx, server.Request{Method: http.MethodPost, Path: "/v1/runs/" + row.ID + "/resume"}, nil)
	if isProblem(err, "run-driven") || isProblem(err, "run-ended") {
		err = nil
	}
	return row.Seq, err
}

// startBody returns the body of the request that starts the run of a call.
func (o *offer) startBody(arguments json.RawMessage) (map[string]any, error) {
	given := map[string]string{}
	if len(arguments) > 0 {
		dec := json.NewDecoder(bytes.NewReader(arguments))
		if err := dec.Decode(&given); err != nil {
			return nil, fmt.Errorf("the arguments of %s are no object of texts: %w", o.Name, err)
		}
	}
	body := map[string]any{o.Key: o.Name}
	if task, is := given[o.task]; is {
		body["input"] = task
		delete(given, o.task)
	}
	known := slices.Concat(o.Vars, o.TaskVars)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s has no argument %q; it has %s", o.Name, name, strings.Join(append([]string{o.task}, known...), ", "))
		}
	}
	if len(given) > 0 {
		body["vars"] = given
	}
	return body, nil
}

// ask makes a request as the caller and decodes the response.
func (s *Server) ask(ctx context.Context, q server.Request, into any) error {
	answer, err := s.Options.Server.Ask(ctx, callerOf(ctx), q)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// isProblem reports whether a request failed with a problem of the given kind.
func isProblem(err error, kind string) bool {
	p, is := errors.AsType[*server.Problem](err)
	return is && strings.HasSuffix(p.Type, ":"+kind)
}

// failed returns the result of a call that has no run.
func failed(err error) *mcp.CallToolResult {
	text := err.Error()
	if p, is := errors.AsType[*server.Problem](err); is {
		text = p.Detail + ": " + p.Next
	}
	return textResult(text, true)
}

func textResult(text string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: isError}
}

// ended returns the result of a run that has ended.
func (s *Server) ended(ctx context.Context, row journal.Run) *mcp.CallToolResult {
	var o event.Outcome
	if err := json.Unmarshal(row.Outcome, &o); err != nil {
		return failed(err)
	}
	r := textResult(o.FinalOutput, !o.OK)
	if !o.OK {
		text := fmt.Sprintf("Run %s has %s (%s).", row.ID, o.Status, o.Reason)
		if o.Error != nil {
			text += " " + o.Error.Message + "."
		}
		if o.LastOutput != "" {
			text += "\n\nIts last words:\n" + o.LastOutput
		}
		r = textResult(text, true)
	} else if value := s.structured(row, o); value != nil {
		r.StructuredContent = value
	}
	r.Meta = s.meta(ctx, row.ID)
	return r
}

// structured returns the structured result of a run whose file has a result schema, nil
// for other runs.
func (s *Server) structured(row journal.Run, o event.Outcome) any {
	offer := s.offerOf(row.Name)
	if offer == nil || offer.tool.OutputSchema == nil {
		return nil
	}
	var value map[string]any
	for _, text := range [][]byte{o.Result, []byte(o.FinalOutput)} {
		if json.Unmarshal(text, &value) == nil && value != nil {
			return value
		}
	}
	return nil
}

// parked returns the result of a run that waits for a person.
func (s *Server) parked(row journal.Run, questions []openQuestion) *mcp.CallToolResult {
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s has not ended: it is %s (%s).\n", row.ID, row.State, row.Detail)
	for _, q := range questions {
		fmt.Fprintf(&b, "It asks: %s\n", q.text())
		if q.message() {
			fmt.Fprintf(&b, "Answer: %s runs input %s TEXT --resume\n", s.Command, row.ID)
			continue
		}
		fmt.Fprintf(&b, "Approve: %s runs approve %s %s --resume\nReject: %s runs reject %s %s --reason WHY --resume\n", s.Command, row.ID, q.ID, s.Command, row.ID, q.ID)
	}
	if len(questions) == 0 {
		fmt.Fprintf(&b, "%s runs show %s says what it waits for; %s runs resume %s continues it.\n", s.Command, row.ID, s.Command, row.ID)
	}
	fmt.Fprintf(&b, "The same call with the same %s in _meta gives the result of the run, and so does the resource pawl://runs/%s.", KeyMeta, row.ID)
	r := textResult(b.String(), true)
	r.Meta = s.meta(context.Background(), row.ID)
	return r
}

// stop parks or cancels the run of a cancelled call.
func (s *Server) stop(ctx context.Context, run string) (*mcp.CallToolResult, error) {
	q := server.Request{Method: http.MethodPost, Path: "/v1/runs/" + run + "/pause"}
	text := fmt.Sprintf("The call was cancelled. Run %s parks; '%s runs resume %s' or the same call with the same %s continues it.", run, s.Command, run, KeyMeta)
	if s.OnCancel == Cancel {
		q.Path, q.Body = "/v1/runs/"+run+"/cancel", map[string]string{"reason": "its MCP client cancelled the call"}
		text = "The call was cancelled, and so is run " + run + "."
	}
	err := s.ask(ctx, q, nil)
	if err != nil && !isProblem(err, "run-ended") && !isProblem(err, "run-stands-still") {
		return nil, err
	}
	r := textResult(text, true)
	r.Meta = s.meta(ctx, run)
	return r, nil
}

// meta returns the _meta that names a run and its trace.
func (s *Server) meta(ctx context.Context, run string) mcp.Meta {
	m := mcp.Meta{RunMeta: run}
	if started, err := s.Options.Server.Started(ctx, run); err == nil && started.Trace.ID != "" {
		m[traceMeta] = traceparent(started.Trace.ID, started.Trace.Span(run, ""))
	}
	return m
}
