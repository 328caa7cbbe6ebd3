//lint:file-ignore SA1019 servers of protocol 2025-11-25 ask for roots, and a later protocol only advises against them

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// A server asks a person in one of three ways: with a result that names what it needs,
// with a request during a call, or with an error that names a page. Each of them ends
// the attempt with a question; the next attempt contains the answer. A server repeats a
// request during a call in the next attempt, and receives the answer at once.

// exchange holds the questions of a server and a person's answers about a call, as the
// journal stores them between attempts.
type exchange struct {
	Answers []answer `json:"answers,omitempty"`
	// Open is the current question, Left the other questions of the same result.
	Open asks   `json:"open"`
	Left []asks `json:"left,omitempty"`
	// State is the state in the result that must be sent back.
	State string `json:"state,omitempty"`
	// Login reports that the person must log in, which needs no answer.
	Login bool `json:"login,omitempty"`
}

// asks is one question of a server. Name is the name of the request in a result, empty
// for other questions.
type asks struct {
	Name   string          `json:"name,omitempty"`
	Digest string          `json:"digest"`
	Text   string          `json:"message"`
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"`
	// Consent is what the question asks a person to allow; see [event.Form.Consent].
	Consent string `json:"consent,omitempty"`
	// Sampling is what a model is to answer in place of a person, and Stops are the
	// texts at which the answer ends.
	Sampling *tool.Sampling `json:"sampling,omitempty"`
	Stops    []string       `json:"stops,omitempty"`
}

// answer is a person's answer; Content is absent if the person declined.
type answer struct {
	Name    string          `json:"name,omitempty"`
	Digest  string          `json:"digest"`
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

const (
	accepted = "accept"
	declined = "decline"
)

// result returns the answer in the protocol's form.
func (a answer) result() (*sdk.ElicitResult, error) {
	r := &sdk.ElicitResult{Action: a.Action}
	if a.Content == nil {
		return r, nil
	}
	return r, json.Unmarshal(a.Content, &r.Content)
}

// continued returns the exchange of a call with a person's new answer, empty for a
// first attempt.
func continued(in *event.FormAnswer) (exchange, error) {
	var x exchange
	if in == nil {
		return x, nil
	}
	if err := json.Unmarshal(in.State, &x); err != nil {
		return x, fmt.Errorf("what the journal keeps of a server's question: %w", err)
	}
	if x.Login {
		return x.loggedIn(in)
	}
	if x.Open.Consent != "" { // the run knows the answer
		x.Open = asks{}
	}
	if x.Open.Digest == "" {
		return x, nil
	}
	a := answer{Name: x.Open.Name, Digest: x.Open.Digest, Action: declined}
	if in.Kind == event.ApprovalAnswered {
		a.Action = accepted
		if x.Open.URL == "" {
			a.Content = in.Input
		}
	}
	x.Answers, x.Open = append(x.Answers, a), asks{}
	return x, nil
}

// ask ends an attempt with a question.
func (x exchange) ask(q asks) error {
	x.Open = q
	f := event.Form{Message: clean(q.Text, maxDescription), URL: q.URL, Consent: q.Consent}
	if q.URL == "" {
		schema, err := cleanSchema(q.Schema)
		if err != nil {
			return err
		}
		f.Schema = schema
	}
	state, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f.State = state
	return &tool.InputRequired{Form: f}
}

// next asks the remaining questions of a result, nil if there are none.
func (x exchange) next() error {
	if len(x.Left) == 0 {
		return nil
	}
	q := x.Left[0]
	x.Left = x.Left[1:]
	return x.ask(q)
}

// responses returns the answers to the requests of a result, nil if there are none.
func (x exchange) responses(roots []*sdk.Root) (sdk.InputResponseMap, error) {
	var all sdk.InputResponseMap
	for _, a := range x.Answers {
		if a.Name == "" {
			continue
		}
		if all == nil {
			all = sdk.InputResponseMap{}
		}
		switch a.Action {
		case actionRoots:
			all[a.Name] = &sdk.ListRootsResult{Roots: roots}
			continue
		case actionSampling:
			var res sdk.CreateMessageWithToolsResult
			if err := json.Unmarshal(a.Content, &res); err != nil {
				return nil, err
			}
			all[a.Name] = &res
			continue
		}
		r, err := a.result()
		if err != nil {
			return nil, err
		}
		all[a.Name] = r
	}
	return all, nil
}

// actionRoots marks a request for the roots, which needs no person.
const actionRoots = "roots"

// questionOf returns the question in a request.
func questionOf(name string, p *sdk.ElicitParams) (asks, error) {
	q := asks{Name: name, Text: p.Message, URL: p.URL}
	if p.URL == "" {
		q.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		if p.RequestedSchema != nil {
			schema, err := json.Marshal(p.RequestedSchema)
			if err != nil {
				return q, fmt.Errorf("the schema of what it asks: %w", err)
			}
			q.Schema = schema
		}
	}
	text, err := json.Marshal([]any{q.Text, q.URL, q.Schema})
	if err != nil {
		return q, err
	}
	sum := sha256.Sum256(text)
	q.Digest = hex.EncodeToString(sum[:16])
	return q, nil
}

// needs handles a result that names what the server needs. It returns an error that
// asks a person; nil means that all answers are present, so the call may be sent again.
func (r remote) needs(ctx context.Context, x *exchange, res *sdk.CallToolResult, run tool.Run) error {
	x.State, x.Answers, x.Left = res.RequestState, nil, nil
	for _, name := range slices.Sorted(maps.Keys(res.InputRequests)) {
		switch p := res.InputRequests[name].(type) {
		case *sdk.ElicitParams:
			q, err := questionOf(name, p)
			if err != nil {
				return err
			}
			x.Left = append(x.Left, q)
		case *sdk.ListRootsParams:
			x.Answers = append(x.Answers, answer{Name: name, Action: actionRoots})
		case *sdk.CreateMessageWithToolsParams:
			q, err := r.server.samplingOf(name, p)
			if err != nil {
				return err
			}
			x.Left = append(x.Left, q)
		default:
			return r.server.noSampling()
		}
	}
	if len(res.InputRequests) == 0 {
		return tool.Transient(&tool.Error{
			Type: event.ErrorTool, NothingCame: true,
			Message: fmt.Sprintf("the MCP server %s is busy and did not run the call", r.server.o.Server),
		})
	}
	return r.next(ctx, x, run)
}

func (s *Server) noSampling() error {
	return &tool.Error{
		Type: event.ErrorTool, NothingCame: true,
		Message: fmt.Sprintf("the MCP server %s asks for the answer of a model (sampling), which is not offered here; the key sampling of a server offers it for calls", s.o.Server),
	}
}

// pages returns the question for a server's error that asks a person to open pages
// first, nil for any other error.
func (x exchange) pages(err error) error {
	wanted, is := errors.AsType[*jsonrpc.Error](err)
	if !is || wanted.Code != sdk.CodeURLElicitationRequired {
		return nil
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(wanted.Data, &data) != nil {
		return nil
	}
	x.Left = nil
	for _, p := range data.Elicitations {
		q, wrong := questionOf("", p)
		if wrong != nil || q.URL == "" {
			return nil
		}
		if slices.ContainsFunc(x.Answers, func(a answer) bool { return a.Digest == q.Digest && a.Action == declined }) {
			return &tool.Error{Type: event.ErrorRejected, NothingCame: true, Message: "the server wants a person to open a page of " + event.Form{URL: q.URL}.Host() + " first, and the person declined"}
		}
		x.Left = append(x.Left, q)
	}
	if len(x.Left) == 0 {
		return nil
	}
	return x.next()
}

func refusal(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
}
