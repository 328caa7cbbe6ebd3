package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/journal"
)

// openQuestion is a question of a run or of a run below it.
type openQuestion struct {
	ID     string             `json:"id"`
	Kind   event.QuestionKind `json:"kind"`
	Run    string             `json:"run"`
	Reason string             `json:"reason"`
	What   json.RawMessage    `json:"what"`
}

// message reports whether a message to the run answers the question.
func (q openQuestion) message() bool { return q.Kind == event.QuestionGoal }

// asksForm returns the form that a question of kind form asks for.
func (q openQuestion) asksForm() (f event.FormAsked, is bool) {
	if q.Kind != event.QuestionForm || json.Unmarshal(q.What, &f) != nil {
		return f, false
	}
	return f, true
}

// key identifies the question within the tree.
func (q openQuestion) key() string { return q.Run + "/" + q.ID }

// text returns the question as text for a person.
func (q openQuestion) text() string {
	var call struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	about := string(q.What)
	if q.Kind == event.QuestionCall && json.Unmarshal(q.What, &call) == nil && call.Tool != "" {
		about = call.Tool + " " + string(call.Args)
	}
	const most = 4000
	if len(about) > most {
		about = strings.ToValidUTF8(about[:most], "") + "…"
	}
	if q.Reason != "" {
		about += " (" + q.Reason + ")"
	}
	return about
}

// questions returns the open questions of a run that waits for people.
func (s *Server) questions(ctx context.Context, row journal.Run) ([]openQuestion, error) {
	var page struct{ Items []openQuestion }
	err := s.ask(ctx, server.Request{Method: http.MethodGet, Path: "/v1/runs/" + row.ID + "/questions?tree=true"}, &page)
	return page.Items, err
}

// elicits reports whether the client's user can be asked a question.
func (s *Server) elicits(ctx context.Context, req *mcp.CallToolRequest) bool {
	return s.mayElicit(ctx, req.ClientCapabilities())
}

func (s *Server) mayElicit(ctx context.Context, c *mcp.ClientCapabilities) bool {
	if c == nil || c.Elicitation == nil || c.Elicitation.Form == nil && c.Elicitation.URL != nil {
		return false
	}
	if s.MayDecide == nil {
		return true
	}
	err := s.MayDecide(ctx)
	if err != nil {
		s.Log.Warn("a question is not put to the client's user", "reason", err)
	}
	return err == nil
}

// manyRoundTrips reports whether the client answers questions by repeating the call.
func manyRoundTrips(req *mcp.CallToolRequest) bool { return req.ProtocolVersion() >= statelessVersion }

// form returns the form with which a person answers a question.
func (q openQuestion) form() *mcp.ElicitParams {
	type field struct {
		Type        string   `json:"type"`
		Title       string   `json:"title,omitempty"`
		Description string   `json:"description,omitempty"`
		Enum        []string `json:"enum,omitempty"`
	}
	fields, required := map[string]field{
		"decision": {Type: "string", Title: "Decision", Enum: []string{"approve", "reject"}},
		"reason":   {Type: "string", Title: "Reason", Description: "Why; the model reads the reason of a rejection."},
	}, "decision"
	if f, is := q.asksForm(); is {
		p := &mcp.ElicitParams{Mode: "form", Message: fmt.Sprintf("Run %s asks for %s: %s", q.Run, f.Tool, q.Reason), RequestedSchema: f.Schema}
		if f.URL != "" {
			p.Message = fmt.Sprintf("%s Open %s yourself, and accept when it is done.", p.Message, f.URL)
			p.RequestedSchema = map[string]any{"type": "object", "properties": map[string]any{}}
		}
		return p
	}
	if q.message() {
		fields, required = map[string]field{"text": {Type: "string", Title: "Answer"}}, "text"
	}
	return &mcp.ElicitParams{
		Mode: "form", Message: fmt.Sprintf("Run %s asks: %s", q.Run, q.text()),
		RequestedSchema: map[string]any{"type": "object", "properties": fields, "required": []string{required}},
	}
}

// requests converts questions for a client of many round trips.
func requests(questions []openQuestion) mcp.InputRequestMap {
	m := mcp.InputRequestMap{}
	for _, q := range questions {
		m[q.key()] = q.form()
	}
	return m
}

// elicit asks the client's user one question after another, and sends the decisions. It
// reports whether all questions were decided.
func (w *wait) elicit(questions []openQuestion) (bool, error) {
	for _, q := range questions {
		answer, err := w.req.Session.Elicit(w.ctx, q.form())
		if err != nil {
			return false, err
		}
		if decided, err := w.decide(w.ctx, w.run, q, answer); !decided || err != nil {
			return false, err
		}
	}
	return true, nil
}

// answer sends the decisions that a client adds to a repeated call or to a task. It
// skips answers to questions that are no longer open. It reports whether a question was
// decided, and whether the user dismissed one.
func (s *Server) answer(ctx context.Context, row journal.Run, responses mcp.InputResponseMap) (decided, dismissed bool, err error) {
	if s.MayDecide != nil && len(responses) > 0 {
		if err := s.MayDecide(ctx); err != nil {
			return false, false, err
		}
	}
	questions, err := s.questions(ctx, row)
	if err != nil {
		return false, false, err
	}
	for _, q := range questions {
		if answer, is := responses[q.key()].(*mcp.ElicitResult); is {
			done, err := s.decide(ctx, row.ID, q, answer)
			if err != nil {
				return false, false, err
			}
			decided, dismissed = decided || done, dismissed || !done
		}
	}
	return decided, dismissed, nil
}

// decide sends the user's answer to a question. Dismissing the question decides
// nothing; declining it rejects the request.
func (s *Server) decide(ctx context.Context, run string, q openQuestion, answer *mcp.ElicitResult) (decided bool, err error) {
	field := func(name string) string {
		text, _ := answer.Content[name].(string)
		return text
	}
	verb, body := "reject", map[string]any{"callId": q.ID, "reason": cmp.Or(field("reason"), "rejected by the user of the MCP client")}
	f, isForm := q.asksForm()
	switch {
	case answer.Action == "accept" && isForm:
		if verb, body["reason"] = "approve", ""; f.URL == "" {
			body["input"] = answer.Content
		}
	case answer.Action == "accept" && q.message():
		verb, body = "input", map[string]any{"text": field("text")}
	case answer.Action == "accept" && field("decision") == "approve":
		verb, body["reason"] = "approve", field("reason")
	case answer.Action == "accept" && field("decision") == "reject":
	case answer.Action == "decline" && !q.message():
	default:
		return false, nil
	}
	err = s.ask(ctx, server.Request{Method: http.MethodPost, Path: "/v1/runs/" + run + "/" + verb, Body: body}, nil)
	if isProblem(err, "not-pending") && q.Run != run { // several runs of the tree have a question with that id
		err = s.ask(ctx, server.Request{Method: http.MethodPost, Path: "/v1/runs/" + q.Run + "/" + verb, Body: body}, nil)
	}
	if isProblem(err, "already-decided") {
		err = nil
	}
	return err == nil, err
}
