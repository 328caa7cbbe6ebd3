package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/rules/fence"
	"github.com/pawlrun/pawl/llm"
)

// Difference is the first difference between a request and the recorded one.
type Difference struct {
	Run string
	// Call counts the model calls from 1.
	Call int
	// Segment is the part of the request: system, tools, settings or a
	// message; Offset is in bytes of its text.
	Segment string
	Offset  int
	// Recorded and Now are the texts there, cut to a readable length.
	Recorded string
	Now      string
}

// String returns the difference in one line.
func (d Difference) String() string {
	return fmt.Sprintf("request %d differs from the one that run %s recorded, in its %s at byte %d: recorded %q, now %q",
		d.Call, d.Run, d.Segment, d.Offset, d.Recorded, d.Now)
}

// first compares two requests as a model reads them and returns the first difference,
// if there is one. It ignores values that identify a run: its id in the ids of calls,
// the nonce of its fences, and its cache key. It compares messages from an index on,
// since the earlier ones are known to be equal, and also returns the number of equal
// ones.
func first(now, then *llm.Request, from int) (Difference, int) {
	for _, s := range []struct{ name, now, then string }{
		{"system prompt", now.System, then.System},
		{"tools", text(now.Tools), text(then.Tools)},
		{"settings", settings(now), settings(then)},
	} {
		if d, differs := between(s.name, s.now, s.then); differs {
			return d, from
		}
	}
	shared := min(len(now.Messages), len(then.Messages))
	for i := from; i < shared; i++ {
		name := fmt.Sprintf("message %d (%s)", i+1, then.Messages[i].Role)
		if d, differs := between(name, message(now.Messages[i]), message(then.Messages[i])); differs {
			return d, i
		}
	}
	if len(now.Messages) == len(then.Messages) {
		return Difference{}, shared
	}
	d := Difference{Segment: fmt.Sprintf("message %d", shared+1)}
	if shared < len(now.Messages) {
		d.Now = excerpt(message(now.Messages[shared]), 0)
	} else {
		d.Recorded = excerpt(message(then.Messages[shared]), 0)
	}
	return d, shared
}

func between(segment, now, then string) (Difference, bool) {
	if now == then {
		return Difference{}, false
	}
	at := 0
	for at < len(now) && at < len(then) && now[at] == then[at] {
		at++
	}
	return Difference{Segment: segment, Offset: at, Recorded: excerpt(then, at), Now: excerpt(now, at)}, true
}

// excerpt returns the text around an offset, cut between characters.
func excerpt(s string, at int) string {
	const before, after = 20, 60
	from, to := max(at-before, 0), min(at+after, len(s))
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	return s[from:to]
}

func settings(r *llm.Request) string {
	return text(struct {
		MaxTokens     int             `json:"max_tokens"`
		Temperature   *float64        `json:"temperature"`
		Schema        json.RawMessage `json:"schema"`
		ProviderTools []string        `json:"provider_tools"`
	}{r.MaxTokens, r.Temperature, r.Schema, r.ProviderTools})
}

// message returns a message's role and parts as text. It omits the origin, because a
// replayed answer has another origin than the recorded one.
func message(m *llm.Message) string {
	parts := make(llm.Parts, len(m.Parts))
	for i, p := range m.Parts {
		switch p := p.(type) {
		case llm.ToolCall:
			p.CallID = place(p.CallID)
			parts[i] = p
		case llm.ToolResult:
			p.CallID, p.Output = place(p.CallID), fence.Anonymous(p.Output)
			parts[i] = p
		default:
			parts[i] = p
		}
	}
	return text(parts)
}

// place returns the part of a call's id without its run: cycle and number.
func place(callID string) string {
	rest := callID
	for range 2 {
		i := strings.LastIndexByte(rest, '-')
		if i < 0 {
			return callID
		}
		rest = rest[:i]
	}
	return callID[len(rest):]
}

func text(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
