package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// hosted says what a provider did on its side while it answered, a line for
// each tool that it ran. What such a tool gave is between the two of them.
func hosted(parts llm.Parts) []note {
	var notes []note
	for _, p := range parts {
		item, ok := p.(llm.Item)
		if !ok {
			continue
		}
		if text := ran(item); text != "" {
			notes = append(notes, note{plain, "  ⇢ " + firstLine(text, 100) + " (run by the provider)"})
		}
		notes = append(notes, beside(item)...)
	}
	return notes
}

// beside says what a service of the chat completions told of the tools that it
// ran: the calls, and the pages that the answer stands on.
func beside(item llm.Item) []note {
	var told struct {
		Executed []struct {
			Type      string          `json:"type"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"executed_tools"`
		Annotations []struct {
			Citation struct {
				URL string `json:"url"`
			} `json:"url_citation"`
		} `json:"annotations"`
	}
	if json.Unmarshal(item.Raw, &told) != nil {
		return nil
	}
	var notes []note
	for _, call := range told.Executed {
		notes = append(notes, note{plain, "  ⇢ " + firstLine(call.Type+" "+spoken(call.Arguments), 100) + " (run by the provider)"})
	}
	for _, a := range told.Annotations {
		if url := a.Citation.URL; url != "" {
			notes = append(notes, note{plain, "  ⇢ cites " + firstLine(url, 100)})
		}
	}
	return notes
}

// ran names the tool of an item and what it was given, "" for an item that is
// no call of a tool.
func ran(item llm.Item) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item.Raw, &fields) != nil {
		return ""
	}
	name := item.Type
	if json.Unmarshal(fields["name"], &name) != nil {
		name = strings.TrimSuffix(item.Type, "_call")
	}
	for _, key := range []string{"input", "action", "arguments", "code", "queries", "executableCode"} {
		if given := fields[key]; given != nil {
			return name + " " + spoken(given)
		}
	}
	if strings.HasSuffix(item.Type, "_call") {
		return name
	}
	return ""
}

// spoken is a JSON value for people: a text as it is, anything else as JSON in
// one line.
func spoken(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	return b.String()
}
