package wiregate

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// recorder says what the program that was recorded lost or rewrote when it
// sent an answer back. That much of a conversation cannot be compared.
type recorder struct {
	// dropsAnswerText: text beside a call was not sent back.
	dropsAnswerText bool
	// asciiPunctuation: typographic dashes and quotes were rewritten.
	asciiPunctuation bool
	// dropsMembers are members of a provider's items that were not sent back.
	dropsMembers []string
}

// recorders are the sessions whose recorder did not send back what it got.
var recorders = map[string]recorder{
	"anthropic-computer-use-loop-stream":     {dropsAnswerText: true},
	"anthropic-pause-turn-web-search-stream": {asciiPunctuation: true, dropsMembers: []string{"caller"}},
}

// read reduces entries to what the recorder kept.
func (r recorder) read(in []entry) []entry {
	out := in[:0:0]
	for _, e := range in {
		if r.dropsAnswerText && e.Role == string(llm.RoleAssistant) && e.Kind == "text" {
			continue
		}
		e.Text, e.Raw, e.Args = r.text(e.Text), r.value(e.Raw), r.value(e.Args)
		out = append(out, e)
	}
	return out
}

func (r recorder) text(s string) string {
	if !r.asciiPunctuation {
		return s
	}
	return strings.NewReplacer("–", "-", "—", "-", "‘", "'", "’", "'", "“", `"`, "”", `"`, "…", "...").Replace(s)
}

func (r recorder) value(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.value(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = r.value(item)
		}
		for _, key := range r.dropsMembers {
			delete(out, key)
		}
		return out
	}
	return v
}
