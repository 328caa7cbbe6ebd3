package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/llm"
)

// fileTurn is the YAML form of a turn.
type fileTurn struct {
	Text      string      `yaml:"text,omitempty"`
	Reasoning string      `yaml:"reasoning,omitempty"`
	ToolCalls []fileCall  `yaml:"tool_calls,omitempty"`
	Usage     *fileUsage  `yaml:"usage,omitempty"`
	Finish    string      `yaml:"finish,omitempty"`
	Error     *fileError  `yaml:"error,omitempty"`
	Delay     string      `yaml:"delay,omitempty"`
	Expect    *fileExpect `yaml:"expect,omitempty"`
	For       string      `yaml:"for,omitempty"`
}

type fileCall struct {
	Name string `yaml:"name"`
	// Arguments is a mapping, or a string that is sent unchanged.
	Arguments any `yaml:"arguments,omitempty"`
}

type fileUsage struct {
	Input      int64 `yaml:"input,omitempty"`
	Output     int64 `yaml:"output,omitempty"`
	CacheRead  int64 `yaml:"cacheRead,omitempty"`
	CacheWrite int64 `yaml:"cacheWrite,omitempty"`
	Reasoning  int64 `yaml:"reasoning,omitempty"`
}

type fileError struct {
	Status     int    `yaml:"status,omitempty"`
	Class      string `yaml:"class,omitempty"`
	Message    string `yaml:"message,omitempty"`
	RetryAfter any    `yaml:"retry_after,omitempty"`
	Partial    string `yaml:"partial,omitempty"`
}

type fileExpect struct {
	Contains texts    `yaml:"contains"`
	Excludes texts    `yaml:"excludes"`
	System   texts    `yaml:"system"`
	Last     texts    `yaml:"last"`
	Tools    []string `yaml:"tools"`
	Messages int      `yaml:"messages"`
}

// FileType is the Go type of a script, for its published schema.
func FileType() reflect.Type { return reflect.TypeFor[[]fileTurn]() }

// texts is one string or a list of them.
type texts []string

// JSONSchema allows both forms.
func (*texts) JSONSchema() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"anyOf": []any{text, map[string]any{"type": "array", "items": text}}}
}

// UnmarshalYAML decodes both forms.
func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// Parse parses a script. name is used in errors and as the model's name.
func Parse(name string, data []byte) (*Model, error) {
	file, err := read(name, data)
	if err != nil {
		return nil, fmt.Errorf("scripted: %w", err)
	}
	var turns []Turn
	for i, f := range file {
		t, err := f.turn()
		if err != nil {
			return nil, fmt.Errorf("scripted: %s: turn %d: %w", name, i+1, err)
		}
		turns = append(turns, t)
	}
	return New(name, turns...), nil
}

// read decodes the one document of a script. It reports all errors at once.
func read(name string, data []byte) ([]fileTurn, error) {
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		return nil, nil
	case err != nil:
		return nil, unreadable(name, err)
	}
	s := shape{file: name}
	s.check(doc.Content[0], reflect.TypeFor[[]fileTurn](), "")
	err := dec.Decode(&second)
	for err == nil && isEmpty(&second) {
		second = yaml.Node{}
		err = dec.Decode(&second)
	}
	if err == nil {
		s.fail(&second, "", "a second document begins here; --- and ... separate documents", "one list of turns")
	} else if !errors.Is(err, io.EOF) {
		return nil, unreadable(name, err)
	}
	if len(s.wrong) > 0 {
		return nil, errors.Join(s.wrong...)
	}
	var file []fileTurn
	if err := doc.Decode(&file); err != nil {
		return nil, unreadable(name, err)
	}
	return file, nil
}

// isEmpty reports whether a document is empty or contains only comments.
func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Value == ""
}

func (f fileTurn) turn() (Turn, error) {
	t := Turn{For: f.For, Text: f.Text, Reasoning: f.Reasoning, Finish: llm.Finish(f.Finish), Usage: (*llm.Usage)(nil)}
	if u := f.Usage; u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning) < 0 {
		return t, errors.New("usage: a number of tokens is less than 0")
	} else if u != nil {
		t.Usage = &llm.Usage{
			Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning,
		}
	}
	if !knownFinish(t.Finish) {
		return t, fmt.Errorf("finish: %q is not one of end, tool, length, context, pause, refusal, malformed, failed", f.Finish)
	}
	var err error
	if t.Delay, err = duration(f.Delay); err != nil {
		return t, fmt.Errorf("delay: %w", err)
	}
	for i, c := range f.ToolCalls {
		call, err := c.call()
		if err != nil {
			return t, fmt.Errorf("tool_calls[%d]: %w", i, err)
		}
		t.ToolCalls = append(t.ToolCalls, call)
	}
	if f.Error != nil {
		if t.Error, err = f.Error.failure(); err != nil {
			return t, fmt.Errorf("error: %w", err)
		}
	}
	if x := f.Expect; x != nil {
		t.Expect = &Expectation{
			Contains: x.Contains, Excludes: x.Excludes, System: x.System, Last: x.Last, Tools: x.Tools, Messages: x.Messages,
		}
	}
	return t, nil
}

func knownFinish(f llm.Finish) bool {
	switch f {
	case "", llm.FinishEnd, llm.FinishTool, llm.FinishLength, llm.FinishContext, llm.FinishPause,
		llm.FinishRefusal, llm.FinishMalformed, llm.FinishFailed:
		return true
	}
	return false
}

func (c fileCall) call() (Call, error) {
	if c.Name == "" {
		return Call{}, errors.New("name is missing")
	}
	switch args := c.Arguments.(type) {
	case nil:
		return Call{Name: c.Name, Arguments: json.RawMessage("{}")}, nil
	case string:
		if json.Valid([]byte(args)) {
			return Call{Name: c.Name, Arguments: json.RawMessage(args)}, nil
		}
		return Call{Name: c.Name, Malformed: args}, nil
	default:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(args); err != nil {
			return Call{}, fmt.Errorf("arguments: %w", err)
		}
		return Call{Name: c.Name, Arguments: json.RawMessage(strings.TrimSpace(b.String()))}, nil
	}
}

func (e *fileError) failure() (*Failure, error) {
	f := &Failure{Status: e.Status, Class: llm.Class(e.Class), Message: e.Message, Partial: e.Partial}
	if f.Class == "" {
		f.Class = llm.ClassOfStatus(e.Status)
	}
	switch f.Class {
	case llm.ClassThrottled, llm.ClassQuota, llm.ClassOverloaded, llm.ClassContextOverflow, llm.ClassInvalid,
		llm.ClassAuth, llm.ClassRefused, llm.ClassNetwork:
	default:
		return nil, fmt.Errorf("class: %q is not one of throttled, quota, overloaded, context_overflow, invalid, auth, refused, network", e.Class)
	}
	if e.RetryAfter != nil {
		d, err := duration(fmt.Sprint(e.RetryAfter))
		if err != nil {
			return nil, fmt.Errorf("retry_after: %w", err)
		}
		f.RetryAfter = &d
	}
	return f, nil
}

// duration parses "1.5s" or a number of seconds.
func duration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is neither a duration like 1.5s nor a number of seconds", s)
	case d < 0:
		return 0, fmt.Errorf("%q is less than 0", s)
	}
	return d, nil
}
