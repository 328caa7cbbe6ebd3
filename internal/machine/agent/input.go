package agent

import (
	"errors"
	"fmt"

	"github.com/pawlrun/pawl/llm"
)

// ErrInput is returned for a task that is no message of a user's.
var ErrInput = errors.New("agent: not a user's message")

// said is a message as a user may say it: texts and files, and nothing that
// claims to be the owner's, the model's, a tool's or the loop's: what a client
// supplies carries no system text, no approval and no compaction boundary.
func said(m *llm.Message) (*llm.Message, error) {
	if m == nil {
		return nil, nil
	}
	if m.Role != llm.RoleUser {
		return nil, fmt.Errorf("%w: its role is %q", ErrInput, m.Role)
	}
	for _, p := range m.Parts {
		switch p.(type) {
		case llm.Text, llm.Media:
		default:
			return nil, fmt.Errorf("%w: it holds a %T", ErrInput, p)
		}
	}
	if m.Origin == "" {
		return m, nil
	}
	own := *m
	own.Origin = ""
	return &own, nil
}
