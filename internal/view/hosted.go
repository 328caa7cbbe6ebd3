package view

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// Hosted describes what the provider did while it answered, a line for each tool that
// it ran. The tools' results are not shown.
func Hosted(answer llm.Parts) []Part {
	var parts []Part
	for _, p := range answer {
		item, ok := p.(llm.Item)
		if !ok {
			continue
		}
		if text := ran(item); text != "" {
			parts = append(parts, line(Plain, "  ⇢ "+firstLine(text, 100)+" (run by the provider)"))
		}
		parts = append(parts, beside(item)...)
	}
	return parts
}

// beside describes the tools that a chat completions service ran: their calls, and the
// pages that the answer cites.
func beside(item llm.Item) []Part {
	var report struct {
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
	if json.Unmarshal(item.Raw, &report) != nil {
		return nil
	}
	var parts []Part
	for _, call := range report.Executed {
		parts = append(parts, line(Plain, "  ⇢ "+firstLine(call.Type+" "+spoken(call.Arguments), 100)+" (run by the provider)"))
	}
	for _, a := range report.Annotations {
		if url := a.Citation.URL; url != "" {
			parts = append(parts, line(Plain, "  ⇢ cites "+firstLine(url, 100)))
		}
	}
	return parts
}

// ran returns the tool of an item and its arguments, "" for an item that is not a tool
// call.
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

// spoken returns a string value as it is, and any other value as JSON on one line.
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
