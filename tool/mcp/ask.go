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
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// A server asks a person in one of three ways: with a result that names what it needs, by
// a request while the call is under way, or with an error that names a page. Each of them
// ends the attempt with the question; the next attempt brings the answer. What a server
// asks while a call is under way it asks again in the next attempt, and is answered at
// once.

// exchange is what a server and a person have said about a call, as the journal keeps it
// from one attempt to the next.
type exchange struct {
	Answers []answer `json:"answers,omitempty"`
	// Open is what the person is asked now, Left what the same result asks besides.
	Open asks   `json:"open"`
	Left []asks `json:"left,omitempty"`
	// State is what the result gives to be sent back.
	State string `json:"state,omitempty"`
	// Login says that a person logs in, and answers nothing.
	Login bool `json:"login,omitempty"`
}

// asks is one question of a server. Name is that of a request in a result, empty for any
// other.
type asks struct {
	Name   string          `json:"name,omitempty"`
	Digest string          `json:"digest"`
	Text   string          `json:"message"`
	Schema json.RawMessage `json:"schema,omitempty"`
	URL    string          `json:"url,omitempty"`
}

// answer is what a person answered; Content is absent where they declined.
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

// result is the answer in the protocol's form.
func (a answer) result() (*sdk.ElicitResult, error) {
	r := &sdk.ElicitResult{Action: a.Action}
	if a.Content == nil {
		return r, nil
	}
	return r, json.Unmarshal(a.Content, &r.Content)
}

// continued is the exchange of a call with what a person has answered since, empty for a
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
	f := event.Form{Message: clean(q.Text, maxDescription), URL: q.URL}
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

// next asks what a result asks besides what has been answered, nil for nothing more.
func (x exchange) next() error {
	if len(x.Left) == 0 {
		return nil
	}
	q := x.Left[0]
	x.Left = x.Left[1:]
	return x.ask(q)
}

// responses are the answers to the requests of a result, nil for none.
func (x exchange) responses(roots []*sdk.Root) (sdk.InputResponseMap, error) {
	var all sdk.InputResponseMap
	for _, a := range x.Answers {
		if a.Name == "" {
			continue
		}
		if all == nil {
			all = sdk.InputResponseMap{}
		}
		if a.Action == actionRoots {
			all[a.Name] = &sdk.ListRootsResult{Roots: roots}
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

// questionOf is what a server asks.
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

// needs takes in a result that names what the server needs. The error asks a person for
// it; nil says that all of it is there, so the call may be sent on.
func (r remote) needs(x *exchange, res *sdk.CallToolResult) error {
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
	return x.next()
}

func (s *Server) noSampling() error {
	return &tool.Error{
		Type: event.ErrorTool, NothingCame: true,
		Message: fmt.Sprintf("the MCP server %s asks for the answer of a model (sampling), which is off", s.o.Server),
	}
}

// pages returns the question of a server whose error wants a person to open pages first,
// nil for any other error.
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

// talk is a call that is under way, as far as its server may ask a person meanwhile.
type talk struct {
	// asked has the first question without an answer, and ends the attempt. over is
	// closed when the attempt has ended.
	asked chan error
	over  chan struct{}
	// run asks a person who is there; nil outside a run. asking is called around that.
	run    tool.Run
	asking func(while bool)
	// ctx is that of the attempt.
	ctx context.Context

	mu sync.Mutex
	x  exchange
	// question is the error that would end the attempt while a person is asked.
	question error
	// answers are those that were not given yet.
	answers []answer
}

func newTalk(ctx context.Context, run tool.Run, x exchange, asking func(while bool)) *talk {
	t := &talk{asked: make(chan error, 1), over: make(chan struct{}), run: run, asking: asking, ctx: ctx, x: x}
	for _, a := range x.Answers {
		if a.Name == "" {
			t.answers = append(t.answers, a)
		}
	}
	return t
}

// take returns the answer to a question and keeps it from being given twice. A person who
// declined what was asked at that place declined whatever is asked there.
func (t *talk) take(q asks) (answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.answers {
		if a.Digest == q.Digest || i == 0 && a.Action == declined {
			t.answers = slices.Delete(t.answers, i, i+1)
			return a, true
		}
	}
	return answer{}, false
}

// ask asks a person who is there, and gives the answer. The error ends the attempt with
// the question.
func (t *talk) ask(q asks) (answer, error) {
	t.mu.Lock()
	err := t.x.ask(q)
	t.question = err
	t.mu.Unlock()
	needs, is := errors.AsType[*tool.InputRequired](err)
	if !is || t.run == nil {
		return answer{}, err
	}
	t.asking(true)
	given, err := t.run.Ask(t.ctx, needs.Form)
	if err != nil {
		return answer{}, err
	}
	t.asking(false)
	now, err := continued(&given)
	if err != nil {
		return answer{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.x, t.question = now, nil
	return now.Answers[len(now.Answers)-1], nil
}

// open is the error that ends the attempt with what a person is asked now, nil for
// nothing.
func (t *talk) open() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.question
}

// talking has the questions of the server put to a call until the returned function is
// called.
func (s *Server) talking(t *talk) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talks = append(s.talks, t)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.talks = slices.DeleteFunc(s.talks, func(other *talk) bool { return other == t })
		close(t.over)
	}
}

// elicit answers a request of the server from the journal, or else ends the attempt at
// the call that it belongs to. No request says which call that is.
func (s *Server) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	q, err := questionOf("", r.Params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	talks := slices.Clone(s.talks)
	s.mu.Unlock()
	for _, t := range talks {
		if a, there := t.take(q); there {
			return a.result()
		}
	}
	if len(talks) != 1 {
		return nil, refusal(fmt.Sprintf("a person can be asked about one call at a time, and %d are under way", len(talks)))
	}
	a, err := talks[0].ask(q)
	if err == nil {
		return a.result()
	}
	select {
	case talks[0].asked <- err:
	default:
		return nil, refusal("a person is asked something else about the call already")
	}
	select {
	case <-talks[0].over:
	case <-ctx.Done():
	}
	return nil, refusal("a person answers later, and the call is made again then")
}

func refusal(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
}
