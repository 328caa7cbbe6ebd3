//lint:file-ignore SA1019 servers ask for the answers of a model, and a later protocol only advises against it

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// Sampling lets a server ask for the answers of a model.
type Sampling struct {
	// Agent is the agent of the runs that answer, Model the name of its model, and USD
	// the limit on what they may cost together in a run.
	Agent string
	Model string
	USD   float64
}

const (
	// actionSampling marks a request for the answer of a model.
	actionSampling = "sampling"
	// codeDeclined is the code of a sampling that a person declined.
	codeDeclined = -1
	// maxAsked bounds the text of a request for a model's answer, in bytes.
	maxAsked = 256 << 10
)

// consent returns the question whether a model may answer the server in this run.
func (s *Server) consent() asks {
	sum := sha256.Sum256([]byte(s.o.Sampling.Agent))
	return asks{
		Digest: hex.EncodeToString(sum[:16]), Consent: s.o.Sampling.Agent, Schema: json.RawMessage(`{"type":"object","properties":{}}`),
		Text: fmt.Sprintf("The MCP server %s asks for answers of the model %s. May the model answer it in this run, for up to USD %g? The answers go to the server.",
			s.o.Server, s.o.Sampling.Model, s.o.Sampling.USD),
	}
}

// wanted returns a request for a model's answer, or why it cannot be answered.
func (s *Server) wanted(p *sdk.CreateMessageWithToolsParams) (tool.Sampling, error) {
	if s.o.Sampling == nil {
		return tool.Sampling{}, s.noSampling()
	}
	w := tool.Sampling{Agent: s.o.Sampling.Agent, USD: s.o.Sampling.USD, System: clean(p.SystemPrompt, maxAsked), MaxTokens: int(max(p.MaxTokens, 0))}
	size := len(p.SystemPrompt)
	for _, m := range p.Messages {
		said := tool.SampledMessage{Role: string(m.Role)}
		for _, part := range m.Content {
			switch c := part.(type) {
			case *sdk.TextContent:
				said.Text = strings.TrimPrefix(said.Text+"\n"+clean(c.Text, maxAsked), "\n")
			case *sdk.ImageContent:
				said.Media = append(said.Media, llm.Media{MediaType: c.MIMEType, Data: c.Data})
			case *sdk.AudioContent:
				said.Media = append(said.Media, llm.Media{MediaType: c.MIMEType, Data: c.Data})
			default:
				return w, errors.New("its messages may hold text, images and audio only")
			}
		}
		size += len(said.Text)
		w.Messages = append(w.Messages, said)
	}
	switch {
	case len(p.Tools) > 0:
		return w, errors.New("the model has no tools here")
	case len(w.Messages) == 0:
		return w, errors.New("it has no messages")
	case size > maxAsked:
		return w, fmt.Errorf("its text has more than %d KiB", maxAsked>>10)
	}
	return w, nil
}

// sampled lets a model answer, once a person has allowed it. The error is
// errConsent if no person has been asked.
func (s *Server) sampled(ctx context.Context, run tool.Run, w tool.Sampling, stops []string) (*sdk.CreateMessageWithToolsResult, error) {
	if run == nil {
		return nil, errors.New("there is no run here that could answer")
	}
	switch allowed, decided := run.Allowed(s.o.Sampling.Agent); {
	case !decided:
		return nil, errConsent
	case !allowed:
		return nil, errDeclined
	}
	select { // the limit in money is that of all of them
	case s.sampling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.sampling }()
	a, err := run.Sample(ctx, w)
	if err != nil {
		return nil, err
	}
	res := &sdk.CreateMessageWithToolsResult{Role: "assistant", Model: s.o.Sampling.Model, StopReason: "endTurn"}
	if a.Cut {
		res.StopReason = "maxTokens"
	}
	for _, stop := range stops {
		if before, _, found := strings.Cut(a.Text, stop); found && stop != "" {
			a.Text, res.StopReason = before, "stopSequence"
		}
	}
	res.Content = []sdk.Content{&sdk.TextContent{Text: a.Text}}
	return res, nil
}

var (
	errConsent  = errors.New("no person was asked whether a model may answer")
	errDeclined = errors.New("a person declined that a model answers this server in this run")
)

// createMessage answers a request of the server during a call. The first one of a run
// asks a person, which ends the attempt unless one is present.
func (s *Server) createMessage(ctx context.Context, r *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	w, err := s.wanted(r.Params)
	if err != nil {
		return nil, refusal(err.Error())
	}
	t, err := s.oneTalk("a model can answer")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(t.ctx, func() { stop(context.Cause(t.ctx)) })()
	res, err := t.sample(ctx, s, w, r.Params.StopSequences)
	if errors.Is(err, errConsent) {
		if _, err = t.ask(s.consent()); err != nil {
			return nil, t.end(ctx, err)
		}
		res, err = t.sample(ctx, s, w, r.Params.StopSequences)
	}
	switch {
	case errors.Is(err, errDeclined):
		return nil, &jsonrpc.Error{Code: codeDeclined, Message: err.Error()}
	case err != nil:
		return nil, refusal(err.Error())
	}
	return res, nil
}

// sample is [Server.sampled]; the time that a model takes is no silence of the server.
func (t *talk) sample(ctx context.Context, s *Server, w tool.Sampling, stops []string) (*sdk.CreateMessageWithToolsResult, error) {
	t.asking(true)
	defer t.asking(false)
	return s.sampled(ctx, t.run, w, stops)
}

// samplingOf returns the question for a request in a result.
func (s *Server) samplingOf(name string, p *sdk.CreateMessageWithToolsParams) (asks, error) {
	w, err := s.wanted(p)
	if own, is := errors.AsType[*tool.Error](err); is {
		return asks{}, own
	}
	if err != nil {
		return asks{}, &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("the MCP server %s asks for an answer of a model that it cannot have: %v", s.o.Server, err)}
	}
	return asks{Name: name, Sampling: &w, Stops: p.StopSequences}, nil
}

// next answers the remaining requests of a result: a model those for its answer, and a
// person the others. The error asks a person; nil means that none remains.
func (r remote) next(ctx context.Context, x *exchange, run tool.Run) error {
	for len(x.Left) > 0 && x.Left[0].Sampling != nil {
		q := x.Left[0]
		res, err := r.server.sampled(ctx, run, *q.Sampling, q.Stops)
		switch {
		case errors.Is(err, errConsent):
			return x.ask(r.server.consent())
		case err != nil:
			kind := event.ErrorTool
			if errors.Is(err, errDeclined) {
				kind = event.ErrorRejected
			}
			return &tool.Error{
				Type: kind, NothingCame: true, Err: err,
				Message: fmt.Sprintf("the MCP server %s asks for the answer of a model, and did not finish the call: %v", r.server.o.Server, err),
			}
		}
		content, err := json.Marshal(res)
		if err != nil {
			return err
		}
		x.Answers = append(x.Answers, answer{Name: q.Name, Action: actionSampling, Content: content})
		x.Left = x.Left[1:]
	}
	return x.next()
}

// sampled reports whether a model answered a request of the last result.
func (x exchange) sampled() bool {
	return slices.ContainsFunc(x.Answers, func(a answer) bool { return a.Action == actionSampling })
}
