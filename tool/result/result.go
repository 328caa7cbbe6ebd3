// Package result provides result.read, with which a model reads more of a tool result
// that was too long to show. It reads only results of the run's own calls: the engine
// checks the handles, see [tool.Results].
package result

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Name is the name of the tool.
const Name = "result.read"

const (
	// defaultPage is the length of a page, in characters, if neither the call nor the
	// run sets one.
	defaultPage = 30_000
	// headerRoom is reserved for the header of a page.
	headerRoom = 120
)

const about = "Read on in a tool result that was too long to be shown whole: its handle is in the line that says how much was left out. " +
	"Gives one page of it and the offset of the next. With a pattern it gives the matching lines instead, each with its line number " +
	"and the offset at which to read it."

type args struct {
	Handle  string `json:"handle" jsonschema:"the handle of the result, as it was shown"`
	Offset  int    `json:"offset,omitempty" jsonschema:"where to begin, in characters from the start of the result"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many characters to read; as many as can be shown when absent"`
	Pattern string `json:"pattern,omitempty" jsonschema:"a regular expression (RE2); gives only the lines that match it"`
}

// New returns the result.read tool. It changes nothing, so it may run beside others and
// again after a crash.
func New() tool.Tool {
	t := declared()
	// A page has the labels of its result, which Run sets.
	t.Labels = &event.Labels{}
	return t
}

// declared returns the tool for all agents, so that its schema is compiled once.
var declared = sync.OnceValue(declare)

func declare() tool.Tool {
	t := tool.NewWithCall(Name, about, run)
	t.Effect, t.ReadOnly, t.Concurrent = event.EffectPure, true, true
	t.Access = func(raw json.RawMessage) []event.Access {
		return []event.Access{{Key: "result:" + argsOf(raw).Handle}}
	}
	t.Describe = func(raw json.RawMessage) string {
		a := argsOf(raw)
		if a.Pattern != "" {
			return fmt.Sprintf("search %s for %s", brief(a.Handle), a.Pattern)
		}
		return fmt.Sprintf("read %s from %d", brief(a.Handle), a.Offset)
	}
	return t
}

// brief returns enough of a handle for a person to recognize it.
func brief(handle string) string {
	const enough = len("sha256-") + 8
	if len(handle) <= enough {
		return handle
	}
	return handle[:enough] + "…"
}

func argsOf(raw json.RawMessage) args {
	var a args
	_ = json.Unmarshal(raw, &a)
	return a
}
