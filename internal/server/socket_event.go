package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlrun/pawl/internal/server/socketio/session"
)

// agentError is the answer to a refused event.
type agentError struct {
	AgentID   string `json:"agentId"`
	SessionID string `json:"sessionId"`
	Error     string `json:"error"`
	Type      string `json:"type"`
}

// Event implements [session.Handler]: an event is a request for its operation, with
// the same role, audit and answer. agentId becomes part of the path, and the rest
// is the body.
func (c *client) Event(ctx context.Context, e session.Incoming) {
	s := c.sockets.server
	agent, r, err := c.request(ctx, e)
	recorder := &answerRecorder{header: http.Header{}, status: http.StatusOK}
	if err != nil {
		p := problemOf(err)
		recorder.body.Reset()
		_ = json.NewEncoder(&recorder.body).Encode(refusalOf(*p, err))
	} else {
		s.recovered(s.router).ServeHTTP(recorder, r)
	}
	var answer struct {
		Success bool      `json:"success"`
		Error   rondoFail `json:"error"`
	}
	if err := json.Unmarshal(recorder.body.Bytes(), &answer); err != nil {
		answer.Error = rondoFail{"INTERNAL", "the server gave no answer"}
		s.log.Error("an event has no answer", "event", e.Name, "error", err)
	}
	if !answer.Success {
		err = c.socket.Emit("agent:error", agentError{agent, "", answer.Error.Message, answer.Error.Type})
	}
	if ackErr := e.Ack(nil, json.RawMessage(bytes.TrimSpace(recorder.body.Bytes()))); err != nil || ackErr != nil {
		s.log.Debug("an event is not answered", "event", e.Name, "error", err, "ack", ackErr)
	}
}

// request returns the request of an event, and its agent.
func (c *client) request(ctx context.Context, e session.Incoming) (agent string, _ *http.Request, err error) {
	o, known := c.sockets.operations[e.Name]
	var body map[string]json.RawMessage
	if len(e.Args) > 0 && json.Unmarshal(e.Args[0], &body) == nil {
		_ = json.Unmarshal(body["agentId"], &agent) // a value of another type is the same as none
	}
	switch {
	case !known:
		return agent, nil, kindNotFound.problem("the events are those of /openapi.json that x-pawl-event names", "there is no event %q", e.Name)
	case len(e.Args) != 1 || len(e.Attachments) > 0 || body == nil:
		return agent, nil, kindBody.problem("send one object", "the event %s comes without an object, or with more than that", e.Name)
	case agent == "":
		return agent, nil, missing("agentId", "GET /v1/agents lists the agents")
	}
	if err := c.limited(); err != nil {
		return agent, nil, err
	}
	delete(body, "agentId")
	text, err := json.Marshal(body)
	if err != nil {
		return agent, nil, err
	}
	ctx = context.WithValue(context.WithValue(ctx, principalKey{}, c.principal), socketKey{}, true)
	r, err := http.NewRequestWithContext(ctx, o.method, strings.ReplaceAll(o.path, "{id}", url.PathEscape(agent)), bytes.NewReader(text))
	if err != nil {
		return agent, nil, err
	}
	r.RemoteAddr = c.remote
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	} else {
		r.ContentLength, r.Body = 0, http.NoBody
	}
	return agent, r, nil
}

// socketKey is the context key of whether a request is an event.
type socketKey struct{}

// answerRecorder records an answer.
type answerRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (o *answerRecorder) Header() http.Header { return o.header }

// WriteHeader implements [http.ResponseWriter].
func (o *answerRecorder) WriteHeader(status int) { o.status = status }

// Write implements [http.ResponseWriter].
func (o *answerRecorder) Write(b []byte) (int, error) { return o.body.Write(b) }

// FlushError supports [http.ResponseController].
func (o *answerRecorder) FlushError() error { return nil }
