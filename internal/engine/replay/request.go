package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

// ErrNoRequest is returned for a cycle without a request of the purpose.
var ErrNoRequest = errors.New("replay: the run has no request of that cycle")

// Request is the model request of a cycle, made again from the journal.
type Request struct {
	Run     string `json:"run"`
	Cycle   int    `json:"cycle"`
	Attempt int    `json:"attempt"`
	Seq     int64  `json:"seq"`
	Model   string `json:"model"`
	// Purpose is empty for the request that the cycle's answer is for.
	Purpose event.Purpose `json:"purpose,omitempty"`
	// Cycles are the cycles that have a request of the purpose, and Before the one before
	// this. Summaries are those in which a compaction asked for a summary.
	Cycles    []int `json:"cycles"`
	Before    int   `json:"before,omitempty"`
	Summaries []int `json:"summaries,omitempty"`
	// Segments is what the request consists of, in its order. Changed is the number of
	// the first one that the request before had otherwise, counted from 1; 0 if this
	// request continues it.
	Segments []Segment `json:"segments"`
	Changed  int       `json:"changed,omitempty"`
	// Usage and Cost are those of the answer, nil without one. Break is what the journal
	// says of input that was paid again.
	Usage *llm.Usage        `json:"usage,omitempty"`
	Cost  *llm.Cost         `json:"cost,omitempty"`
	Break *event.CacheBreak `json:"break,omitempty"`
	Sent
}

// Sent is the proof of a request, and what was sent.
type Sent struct {
	// Proven reports that the bytes of Body have the digest that the journal recorded
	// before they were sent. Why says why not. Where no stream was asked for, as for a
	// summary, Digest is that of the same request for a stream.
	Proven bool   `json:"proven"`
	Why    string `json:"why,omitempty"`
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Body is what the wire encodes now, empty if it cannot.
	Body string `json:"body,omitempty"`
	// Address and Headers are where it goes; a variable stands for each key.
	Address string            `json:"address,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Segment is a part of a request.
type Segment struct {
	// Kind is tools, system, settings, text, reasoning, call, result, media or item.
	Kind string `json:"kind"`
	// Message is the number of the message, from 1; Role is its role.
	Message int      `json:"message,omitempty"`
	Role    llm.Role `json:"role,omitempty"`
	// Name and CallID are those of a call and of its result.
	Name   string `json:"name,omitempty"`
	CallID string `json:"callId,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text"`
	// Tokens is the segment's share of the input that the provider counted, by an
	// estimate of all segments.
	Tokens int64 `json:"tokens"`
	// Later counts the later requests of the run that have the segment too.
	Later int `json:"later"`
}

// same reports whether two requests have a segment in common.
func (s Segment) same(other Segment) bool {
	s.Tokens, s.Later, other.Tokens, other.Later = 0, 0, 0, 0
	return s == other
}

// address is a model that says where its requests go.
type address interface {
	Address(req *llm.Request) (string, http.Header)
}

// whole is a model that sends other bytes for a whole answer than for a stream. The journal
// has the digest of those for a stream.
type whole interface {
	Whole(e *llm.Encoded) *llm.Encoded
}

// RequestOf makes the request of a cycle for a purpose again, the last one of several.
func RequestOf(ctx context.Context, past drive.Past, run string, cycle int, purpose event.Purpose, open func(target string) (llm.Model, string, error)) (Request, error) {
	r := requests{Request: Request{Run: run, Cycle: cycle, Purpose: purpose, Cycles: []int{}, Segments: []Segment{}}}
	if err := past.Refold(ctx, run, r.step); err != nil {
		return r.Request, fmt.Errorf("replay: request of cycle %d of run %s: %w", cycle, run, err)
	}
	if r.asked == nil {
		return r.Request, fmt.Errorf("%w: cycle %d of run %s %s", ErrNoRequest, cycle, run, purpose)
	}
	r.describe()
	r.prove(open)
	return r.Request, nil
}

// requests reads the requests of a run.
type requests struct {
	Request
	// asked is the request, and before the one of the cycle before.
	asked, before *machine.CallModel
	recorded      event.ModelRequested
	last          *machine.CallModel
	// messages, system and tools count the later requests that have each.
	messages      []int
	system, tools int
}

func (r *requests) step(m machine.Machine, ev *event.Event) error {
	switch d := ev.Data.(type) {
	case event.ModelRequested:
		if d.Purpose == event.PurposeSummary && !slices.Contains(r.Summaries, ev.Cycle) {
			r.Summaries = append(r.Summaries, ev.Cycle)
		}
		if a, ok := drive.Due[machine.CallModel](m); ok && d.Purpose == r.Purpose {
			r.request(&a, ev, d)
		}
	case event.ModelResponse:
		if d.Purpose == r.Purpose && ev.Cycle == r.Cycle && r.asked != nil {
			r.Usage, r.Cost = &d.Usage, &d.Cost
		}
	case event.CacheBreak:
		if ev.Cycle == r.Cycle && r.asked != nil && r.Purpose == "" {
			r.Break = &d
		}
	}
	return nil
}

func (r *requests) request(a *machine.CallModel, ev *event.Event, d event.ModelRequested) {
	a.Request.Messages = slices.Clone(a.Request.Messages)
	again := len(r.Cycles) > 0 && r.Cycles[len(r.Cycles)-1] == ev.Cycle
	if !again {
		r.Cycles = append(r.Cycles, ev.Cycle)
	}
	switch {
	case ev.Cycle == r.Cycle:
		if r.asked == nil {
			r.before = r.last
			if len(r.Cycles) > 1 {
				r.Before = r.Cycles[len(r.Cycles)-2]
			}
		}
		r.asked, r.recorded, r.Attempt, r.Seq, r.Model = a, d, d.Attempt, ev.Seq, d.Model
		r.messages = make([]int, len(a.Request.Messages))
	case r.asked != nil && !again:
		r.carry(&a.Request)
	}
	r.last = a
}

// carry counts what a later request has of this one.
func (r *requests) carry(later *llm.Request) {
	has := make(map[*llm.Message]bool, len(later.Messages))
	for _, m := range later.Messages {
		has[m] = true
	}
	for i, m := range r.asked.Request.Messages {
		if has[m] {
			r.messages[i]++
		}
	}
	if later.System == r.asked.Request.System {
		r.system++
	}
	if bytes.Equal(toolsOf(later), toolsOf(&r.asked.Request)) {
		r.tools++
	}
}

// describe sets what the request consists of and compares it with the one before.
func (r *requests) describe() {
	r.Segments = segmentsOf(&r.asked.Request)
	for i := range r.Segments {
		s := &r.Segments[i]
		switch {
		case s.Message > 0:
			s.Later = r.messages[s.Message-1]
		case s.Kind == "system":
			s.Later = r.system
		case s.Kind == "tools":
			s.Later = r.tools
		}
	}
	if u := r.Usage; u != nil && u.Input > 0 {
		for i, tokens := range scaled(r.Segments, u.Input) {
			r.Segments[i].Tokens = int64(math.Round(tokens))
		}
	}
	if r.before == nil {
		return
	}
	before := segmentsOf(&r.before.Request)
	n := 0
	for n < len(before) && n < len(r.Segments) && before[n].same(r.Segments[n]) {
		n++
	}
	if n < len(before) {
		r.Changed = min(n, len(r.Segments)-1) + 1
	}
}

// prove encodes the request and compares it with the journal.
func (r *requests) prove(open func(string) (llm.Model, string, error)) {
	r.Digest, r.Bytes = r.recorded.RequestDigest, r.recorded.RequestBytes
	if r.asked.Target != r.recorded.Model || r.asked.Attempt != r.recorded.Attempt {
		r.Why = "another call is due there now: " + attemptOf(r.asked.Target, r.asked.Attempt)
		return
	}
	model, name, err := open(r.asked.Target)
	if err != nil {
		r.Why = "the model cannot be opened here: " + err.Error()
		return
	}
	req := r.asked.Request
	req.Model = name
	encoded, err := encode(model, &req)
	switch {
	case err != nil:
		r.Why = "the request cannot be encoded: " + err.Error()
	case encoded == nil:
		r.Why = "this model has no wire, so that no bytes were sent"
	case r.Digest == "":
		r.Why = "the journal has no digest of it"
	case encoded.Digest != r.Digest || encoded.Len() != r.Bytes:
		r.Why = "it has other bytes now: recorded " + bytesOf(r.Digest, r.Bytes) + ", now " + bytesOf(encoded.Digest, encoded.Len())
	default:
		r.Proven = true
	}
	if encoded == nil {
		return
	}
	if w, is := model.(whole); is && !r.asked.Streamed {
		encoded = w.Whole(encoded)
		r.Bytes = encoded.Len()
	}
	r.Body = string(bytes.Join(encoded.Segments, nil))
	if at, is := model.(address); is {
		to, header := at.Address(&req)
		r.Address, r.Headers = withoutKeys(to, header)
	}
}

// encode returns the bytes of a request, nil if the model has no wire. A panic of its
// adapter is an error.
func encode(model llm.Model, req *llm.Request) (encoded *llm.Encoded, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model adapter panicked: %v", p)
		}
	}()
	enc, ok := model.(llm.Encoder)
	if !ok {
		return nil, nil
	}
	return enc.Encode(req)
}

// keyless are the headers and parameters that hold no key.
var keyless = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-Version", "Anthropic-Beta", "alt", "api-version"}

// withoutKeys replaces what may be a key in an address and in headers by a variable.
func withoutKeys(to string, header http.Header) (string, map[string]string) {
	headers := map[string]string{}
	for name := range header {
		value := header.Get(name)
		if !slices.Contains(keyless, name) {
			value = "$" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if strings.HasPrefix(header.Get(name), "Bearer ") {
				value = "Bearer $API_KEY"
			}
		}
		headers[name] = value
	}
	u, err := url.Parse(to)
	if err != nil {
		return "", headers
	}
	query := u.Query()
	for name := range query {
		if !slices.Contains(keyless, name) {
			query.Set(name, "KEY")
		}
	}
	u.User, u.RawQuery = nil, query.Encode()
	return u.String(), headers
}

func toolsOf(req *llm.Request) []byte {
	text, err := json.MarshalIndent(req.Tools, "", "  ")
	if err != nil || len(req.Tools) == 0 {
		return nil
	}
	return text
}

// segmentsOf returns the parts of a request, each with an estimate of its tokens.
func segmentsOf(req *llm.Request) []Segment { return segmentsWith(req, map[*llm.Message][]Segment{}) }

// segmentsWith is segmentsOf with what is known of messages from earlier requests.
func segmentsWith(req *llm.Request, known map[*llm.Message][]Segment) (all []Segment) {
	if tools := string(toolsOf(req)); tools != "" {
		all = append(all, Segment{Kind: "tools", Text: tools, Tokens: int64(compact.Tokens(tools))})
	}
	if req.System != "" {
		all = append(all, Segment{Kind: "system", Text: req.System, Tokens: int64(compact.Tokens(req.System))})
	}
	if settings := settingsOf(req); settings != "{}" {
		all = append(all, Segment{Kind: "settings", Text: settings})
	}
	for i, m := range req.Messages {
		parts, is := known[m]
		if !is {
			for _, p := range m.Parts {
				s := segmentOf(p)
				s.Role, s.Tokens = m.Role, int64(compact.Message(&llm.Message{Parts: llm.Parts{p}}))
				parts = append(parts, s)
			}
			known[m] = parts
		}
		for _, s := range parts {
			s.Message = i + 1
			all = append(all, s)
		}
	}
	return all
}

// settingsOf returns what else shapes an answer.
func settingsOf(req *llm.Request) string {
	text, err := json.Marshal(struct {
		MaxTokens     int             `json:"maxTokens,omitempty"`
		Temperature   *float64        `json:"temperature,omitempty"`
		Schema        json.RawMessage `json:"schema,omitempty"`
		ProviderTools []string        `json:"providerTools,omitempty"`
	}{req.MaxTokens, req.Temperature, req.Schema, req.ProviderTools})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func segmentOf(p llm.Part) Segment {
	switch p := p.(type) {
	case llm.Text:
		return Segment{Kind: "text", Text: p.Text}
	case llm.Reasoning:
		return Segment{Kind: "reasoning", Text: p.Text}
	case llm.ToolCall:
		return Segment{Kind: "call", Name: p.Name, CallID: p.CallID, Text: string(p.Args) + p.ArgsText}
	case llm.ToolResult:
		text := p.Output
		for _, f := range p.Media {
			text += "\n" + mediaText(f)
		}
		return Segment{Kind: "result", Name: p.Name, CallID: p.CallID, Text: text, Failed: p.IsError}
	case llm.Media:
		return Segment{Kind: "media", Name: p.Name, Text: mediaText(p)}
	case llm.Item:
		return Segment{Kind: "item", Name: p.Type, Text: string(p.Raw)}
	}
	return Segment{Kind: "item"}
}

func mediaText(f llm.Media) string {
	return fmt.Sprintf("%s %s (%d bytes) %s", f.MediaType, f.Name, len(f.Data), f.URL)
}
