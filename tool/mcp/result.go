package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// result converts the result of a call for the model.
func (r remote) result(res *sdk.CallToolResult) (tool.Result, error) {
	var out tool.Result
	var texts []string
	for _, part := range res.Content {
		if text := show(part, &out); text != "" {
			texts = append(texts, text)
		}
	}
	if res.IsError {
		out.IsError, out.ErrorType = true, event.ErrorTool
	}
	if res.StructuredContent != nil {
		text, err := plainJSON(res.StructuredContent)
		if err != nil {
			return tool.Result{}, fmt.Errorf("the structured content: %w", err)
		}
		out.Structured = json.RawMessage(text)
		if !holds(texts, res.StructuredContent) {
			texts = append(texts, text)
		}
		if r.output != nil && !res.IsError {
			if wrong := r.output.Validate(json.RawMessage(text)); wrong != nil {
				out.IsError, out.ErrorType = true, event.ErrorTool
				texts = append(texts, "The result does not fit the outputSchema of the tool: "+wrong.Error())
			}
		}
	} else if r.output != nil && !res.IsError {
		out.IsError, out.ErrorType = true, event.ErrorTool
		texts = append(texts, "The result does not fit the outputSchema of the tool: it has no structured content.")
	}
	out.Output = strings.Join(texts, "\n")
	return out, nil
}

// show returns a part of a result as text. A part that is not text is added to the
// result's media.
func show(part sdk.Content, into *tool.Result) string {
	switch c := part.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		into.Media = append(into.Media, llm.Media{MediaType: c.MIMEType, Data: c.Data})
	case *sdk.AudioContent:
		into.Media = append(into.Media, llm.Media{MediaType: c.MIMEType, Data: c.Data})
	case *sdk.ResourceLink:
		return strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", c.Name, c.URI, c.Description))
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return ""
		}
		if c.Resource.Blob == nil {
			return c.Resource.Text
		}
		into.Media = append(into.Media, llm.Media{MediaType: c.Resource.MIMEType, Name: path.Base(c.Resource.URI), Data: c.Resource.Blob})
	}
	return ""
}

// holds reports whether one of the texts is the JSON of the value.
func holds(texts []string, value any) bool {
	for _, text := range texts {
		var other any
		if json.Unmarshal([]byte(text), &other) == nil && reflect.DeepEqual(other, value) {
			return true
		}
	}
	return false
}

// plainJSON returns a value as JSON for people and models.
func plainJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
