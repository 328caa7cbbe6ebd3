package wire

import (
	"encoding/json"
	"strings"
)

// Arguments reads what a call was given, once it is there whole. No text is no
// arguments; what is no JSON stays text, so that it never becomes a call that
// can run.
func Arguments(said string) (args json.RawMessage, text string) {
	switch {
	case strings.TrimSpace(said) == "":
		return json.RawMessage("{}"), ""
	case Valid([]byte(said)):
		return json.RawMessage(said), ""
	}
	return nil, said
}
