package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/llm"
)

// Recorder writes the turns of a run to a script, so that the run can be repeated
// without its models. It writes a turn as soon as it is known, so a recording survives
// the end of its process; a repeated turn replaces the first one. It is safe for
// concurrent use.
type Recorder struct {
	path string

	mu sync.Mutex
	// begins holds the offsets of the turns in the file, followed by the end of the
	// last one; nil before the file is open.
	begins []int64
	// first is the ordinal of the file's first turn.
	first int
	err   error
	clean func([]byte) []byte
}

// NewRecorder returns a recorder for a file. The first turn creates the file; new turns
// are appended to existing ones.
func NewRecorder(path string) *Recorder { return &Recorder{path: path} }

// Err returns the first write error, or nil. A model's answer is worth more than its
// recording, so a write error fails no call.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("scripted: the recording %s is not whole: %w", r.path, r.err)
}

// Clean sets a function that each turn passes through before it is written, to remove
// secrets. It must be called before the first turn.
func (r *Recorder) Clean(clean func(turn []byte) []byte) { r.clean = clean }

// Wrap returns the model with recording. It streams, encodes and knows its provider's
// cache rules if the model does.
func (r *Recorder) Wrap(m llm.Model) llm.Model {
	whole := recorded{m, r}
	streamer, streams := m.(llm.Streamer)
	encoder, encodes := m.(llm.Encoder)
	streaming := recordedStream{whole, streamer}
	switch {
	case streams && encodes:
		return struct {
			recordedStream
			llm.Encoder
		}{streaming, encoder}
	case streams:
		return streaming
	case encodes:
		return struct {
			recorded
			llm.Encoder
		}{whole, encoder}
	}
	return whole
}

type recorded struct {
	llm.Model
	recorder *Recorder
}

// Generate implements [llm.Model].
func (m recorded) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	resp, err := m.Model.Generate(ctx, req)
	m.recorder.record(ctx, req.Ordinal, resp, err)
	return resp, err
}

// CacheRules implements [llm.Cacher] if the model does.
func (m recorded) CacheRules(model string, asked llm.Caching) (rules llm.CacheRules, ok bool) {
	if cacher, caches := m.Model.(llm.Cacher); caches {
		rules, ok = cacher.CacheRules(model, asked)
	}
	return rules, ok
}

type recordedStream struct {
	recorded
	streamer llm.Streamer
}

// Stream implements [llm.Streamer].
func (m recordedStream) Stream(ctx context.Context, req *llm.Request, emit func(llm.Delta)) (*llm.Response, error) {
	resp, err := m.streamer.Stream(ctx, req, emit)
	m.recorder.record(ctx, req.Ordinal, resp, err)
	return resp, err
}

// record omits a call that was stopped: its outcome is unknown, and a resumed run
// repeats it.
func (r *Recorder) record(ctx context.Context, ordinal int, resp *llm.Response, err error) {
	if err != nil && ctx.Err() != nil || err == nil && resp == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	text, err := yaml.Marshal([]fileTurn{turnOf(resp, err)})
	if r.clean != nil {
		text = r.clean(text)
	}
	if err == nil {
		err = r.write(ordinal, text)
	}
	r.err = err
}

func (r *Recorder) write(ordinal int, text []byte) error {
	if r.begins == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	turns := len(r.begins) - 1
	// A run that began within another run's history has no earlier turns.
	r.first = max(r.first, ordinal-turns)
	at := min(max(ordinal-r.first, 0), turns)
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	begin := r.begins[at]
	if err := f.Truncate(begin); err != nil {
		return err
	}
	if _, err := f.WriteAt(text, begin); err != nil {
		return err
	}
	r.begins = append(r.begins[:at+1:at+1], begin+int64(len(text)))
	return f.Close()
}

// open finds the offsets of the turns that the file contains.
func (r *Recorder) open() error {
	data, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := Parse(r.path, data); err != nil {
		return err
	}
	begins := []int64{}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err == nil && len(doc.Content) > 0 {
		for _, turn := range doc.Content[0].Content {
			begins = append(begins, lineOffset(data, turn.Line))
		}
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		return errors.New("its last line is cut short")
	}
	r.begins = append(begins, int64(len(data)))
	return nil
}

func lineOffset(data []byte, line int) int64 {
	offset := 0
	for range line - 1 {
		offset += bytes.IndexByte(data[offset:], '\n') + 1
	}
	return int64(offset)
}

func turnOf(resp *llm.Response, err error) fileTurn {
	if err != nil {
		return fileTurn{Error: errorOf(resp, llm.AsError(err))}
	}
	u := resp.Usage
	t := fileTurn{Usage: &fileUsage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning}}
	implied := llm.FinishEnd
	for _, p := range resp.Parts {
		switch p := p.(type) {
		case llm.Text:
			t.Text += p.Text
		case llm.Reasoning:
			t.Reasoning += p.Text
		case llm.ToolCall:
			implied = llm.FinishTool
			t.ToolCalls = append(t.ToolCalls, fileCall{Name: p.Name, Arguments: argumentsOf(p)})
		}
	}
	if resp.Finish != implied {
		t.Finish = string(resp.Finish)
	}
	return t
}

func errorOf(partial *llm.Response, e *llm.Error) *fileError {
	f := &fileError{Status: e.Status, Class: string(e.Class), Message: e.Message}
	if f.Message == "" && e.Err != nil {
		f.Message = e.Err.Error()
	}
	if e.HasRetryAfter {
		f.RetryAfter = e.RetryAfter.String()
	}
	if partial != nil {
		f.Partial = partial.Parts.Text()
	}
	return f
}

// argumentsOf returns a mapping, which is readable, if that is equivalent to the
// model's text, and otherwise the text.
func argumentsOf(c llm.ToolCall) any {
	if len(c.Args) == 0 {
		return c.ArgsText
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(c.Args, &doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return string(c.Args)
	}
	text, err := yaml.Marshal([]fileTurn{{ToolCalls: []fileCall{{Name: "x", Arguments: doc.Content[0]}}}})
	if err != nil {
		return string(c.Args)
	}
	again, err := Parse("", text)
	if err != nil || !sameJSON(again.turns[0].ToolCalls[0].Arguments, c.Args) {
		return string(c.Args)
	}
	return doc.Content[0]
}

func sameJSON(a, b []byte) bool {
	x, errX := numbersAsText(a)
	y, errY := numbersAsText(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// numbersAsText decodes JSON and keeps the text of its numbers.
func numbersAsText(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}
