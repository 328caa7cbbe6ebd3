package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/hook"
)

// hookInput is the input of a program. ToolName and Input are Alfred's names of Tool
// and Args.
type hookInput struct {
	Event      event.HookStage          `json:"event"`
	Hook       string                   `json:"hook"`
	Run        string                   `json:"run"`
	Cycle      int                      `json:"cycle"`
	Workspace  string                   `json:"workspace"`
	CallID     string                   `json:"callId,omitempty"`
	Tool       string                   `json:"tool,omitempty"`
	Args       json.RawMessage          `json:"args,omitempty"`
	ToolName   string                   `json:"toolName,omitempty"`
	Input      json.RawMessage          `json:"input,omitempty"`
	Result     *result                  `json:"result,omitempty"`
	Outcome    *event.Outcome           `json:"outcome,omitempty"`
	Compaction *event.HistoryCompressed `json:"compaction,omitempty"`
}

// result is the result of a call, as the model would see it.
type result struct {
	Output     string          `json:"output"`
	IsError    bool            `json:"isError"`
	ErrorType  event.ErrorType `json:"errorType,omitempty"`
	ExitCode   *int            `json:"exitCode,omitempty"`
	Truncated  bool            `json:"truncated,omitempty"`
	DurationMs int64           `json:"durationMs,omitempty"`
}

func encode(c hook.Call, workspace string) ([]byte, error) {
	t := hookInput{
		Event: c.Stage, Hook: c.Hook, Run: c.Run, Cycle: c.Cycle, Workspace: workspace,
		CallID: c.CallID, Tool: c.Tool, Args: c.Args, ToolName: c.Tool, Input: c.Args,
		Outcome: c.Outcome, Compaction: c.Compaction,
	}
	if r := c.Result; r != nil {
		t.Result = &result{
			Output: r.Output, IsError: r.IsError, ErrorType: r.ErrorType, ExitCode: r.ExitCode,
			Truncated: r.Truncated, DurationMs: r.DurationMs,
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return nil, fmt.Errorf("what it is told cannot be written: %w", err)
	}
	return b.Bytes(), nil
}

// answer is the output of a gate. UpdatedInput is Alfred's: its members replace those
// of the arguments, which Args replaces as a whole.
type answer struct {
	Decision     string          `json:"decision"`
	Reason       string          `json:"reason"`
	Args         json.RawMessage `json:"args"`
	UpdatedInput json.RawMessage `json:"updatedInput"`
	Output       *string         `json:"output"`
}

// decode decodes the output of a gate. It is strict: a gate that tries to rewrite or to
// ask, and makes a mistake, must not count as one that agrees.
func decode(out []byte, c hook.Call) (hook.Answer, error) {
	if empty(out) {
		return hook.Answer{}, nil
	}
	var a answer
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.DisallowUnknownFields()
	err := dec.Decode(&a)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows on the object")
		}
	}
	if err == nil {
		err = plain(out)
	}
	if err != nil {
		return hook.Answer{}, fmt.Errorf("its answer is not understood: %s; print nothing, or one object with "+
			"decision, reason, args, updatedInput or output", strings.TrimPrefix(err.Error(), "json: "))
	}
	decision, err := decisionOf(a.Decision)
	if err != nil {
		return hook.Answer{}, err
	}
	said := hook.Answer{Decision: decision, Reason: a.Reason, Args: a.Args, Output: a.Output}
	if a.UpdatedInput == nil {
		return said, nil
	}
	if a.Args != nil {
		return hook.Answer{}, errors.New("its answer has both args and updatedInput")
	}
	said.Args, err = laidOver(c.Args, a.UpdatedInput)
	return said, err
}

// plain rejects an answer that is null or contains null, which a script prints if its
// filter finds nothing; and one with duplicate members, which readers interpret
// differently.
func plain(out []byte) error {
	dec := json.NewDecoder(bytes.NewReader(out))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.New("it is no object")
	}
	var said []string
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		switch {
		case string(value) == "null":
			return fmt.Errorf("its %s is null", name)
		case slices.ContainsFunc(said, func(other string) bool { return strings.EqualFold(other, name) }):
			return fmt.Errorf("its %s is given twice", name)
		}
		said = append(said, name)
	}
	return nil
}

// decisionOf also accepts the words of other systems' hooks. "allow" means to continue:
// no hook permits what policy does not.
func decisionOf(word string) (event.HookDecision, error) {
	switch word {
	case "":
		return "", nil
	case "continue", "allow":
		return event.HookContinue, nil
	case "block", "deny":
		return event.HookBlock, nil
	case "ask":
		return event.HookAsk, nil
	case "rewrite":
		return event.HookRewrite, nil
	}
	return "", fmt.Errorf("its decision is %q, which is none of continue, rewrite, ask, block", word)
}

// laidOver replaces the members that an update contains and keeps the others.
func laidOver(args, update json.RawMessage) (json.RawMessage, error) {
	var base, over map[string]json.RawMessage
	if err := json.Unmarshal(args, &base); err != nil {
		return nil, fmt.Errorf("the arguments are no object: %w", err)
	}
	if err := json.Unmarshal(update, &over); err != nil || over == nil {
		return nil, errors.New("its updatedInput is no object")
	}
	if base == nil {
		base = map[string]json.RawMessage{}
	}
	maps.Copy(base, over)
	whole, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("its updatedInput cannot be laid over the arguments: %w", err)
	}
	return whole, nil
}
