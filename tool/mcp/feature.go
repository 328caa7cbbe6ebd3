package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// feature is a capability of a server that is offered as a tool of its name. Its
// definition is this package's, except that it exists only if the server has the
// capability and no tool of that name.
type feature struct {
	definition
	has  func(c *sdk.ServerCapabilities) bool
	send sender
}

// sender makes one attempt at a call in a session.
type sender func(ctx context.Context, client *sdk.ClientSession, p *sdk.CallToolParams) (reply, error)

// reply is the result of a call. needs reports that the server requires input first.
type reply struct {
	*sdk.CallToolResult
	needs bool
}

func features() []feature {
	return []feature{
		{
			definition: definition{
				Name: "resources", Feature: "resources",
				Description: "Reads a resource of the server by its uri. Without a uri it lists the resources, and the templates of further uris.",
				InputSchema: json.RawMessage(`{"additionalProperties":false,"properties":{"uri":{"description":"uri of the resource to read","type":"string"}},"type":"object"}`),
			},
			has:  func(c *sdk.ServerCapabilities) bool { return c.Resources != nil },
			send: resources,
		},
		{
			definition: definition{
				Name: "prompts", Feature: "prompts",
				Description: "Fills in a prompt of the server by its name. Without a name it lists the prompts and their arguments.",
				InputSchema: json.RawMessage(`{"additionalProperties":false,"properties":{"arguments":{"additionalProperties":{"type":"string"},"description":"arguments of the prompt by name","type":"object"},"name":{"description":"name of the prompt","type":"string"}},"type":"object"}`),
			},
			has:  func(c *sdk.ServerCapabilities) bool { return c.Prompts != nil },
			send: prompts,
		},
	}
}

// senderOf returns how the calls of a tool are sent.
func senderOf(d definition) sender {
	for _, f := range features() {
		if d.Feature == f.Feature {
			return f.send
		}
	}
	return func(ctx context.Context, client *sdk.ClientSession, p *sdk.CallToolParams) (reply, error) {
		res, err := client.CallTool(ctx, p)
		return reply{res, err == nil && res.NeedsInput()}, err
	}
}

// entry is a resource, a template of resources or a prompt in a list.
type entry struct {
	URI         string  `json:"uri,omitempty"`
	Template    string  `json:"uriTemplate,omitempty"`
	Name        string  `json:"name,omitempty"`
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	MediaType   string  `json:"mimeType,omitempty"`
	Size        int64   `json:"size,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Arguments   []entry `json:"arguments,omitempty"`
}

func cleanEntries(all []entry) {
	for i := range all {
		for _, text := range []*string{&all[i].URI, &all[i].Template, &all[i].Name, &all[i].Title, &all[i].Description, &all[i].MediaType} {
			*text = clean(*text, maxDescription)
		}
		cleanEntries(all[i].Arguments)
	}
}

// entries reads all pages of a list.
func entries(page func(cursor string) (items any, next string, err error)) ([]entry, error) {
	all, err := pages("entries", func(cursor string) (these []entry, next string, err error) {
		items, next, err := page(cursor)
		if err != nil {
			return nil, "", err
		}
		text, err := json.Marshal(items)
		if err != nil {
			return nil, "", err
		}
		return these, next, json.Unmarshal(text, &these)
	})
	if wrong, is := errors.AsType[listError](err); is {
		err = &tool.Error{Type: event.ErrorTool, Message: "the list of the server cannot be used: " + wrong.Error()}
	}
	return all, err
}

// asResult returns a list as a result, each entry as a line.
func asResult(all []entry) (reply, error) {
	cleanEntries(all)
	lines := []string{}
	for _, e := range all {
		line, err := plainJSON(e)
		if err != nil {
			return reply{}, err
		}
		lines = append(lines, line)
	}
	if len(all) == 0 {
		lines = []string{"The list of the server is empty."}
	}
	return reply{CallToolResult: &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(lines, "\n")}}}}, nil
}

func resources(ctx context.Context, client *sdk.ClientSession, p *sdk.CallToolParams) (reply, error) {
	var args struct{ URI string }
	if err := decodeArgs(p, &args); err != nil {
		return reply{}, err
	}
	if args.URI == "" {
		return listResources(ctx, client)
	}
	got, err := client.ReadResource(ctx, &sdk.ReadResourceParams{Meta: p.Meta, URI: args.URI, RequestState: p.RequestState, InputResponses: p.InputResponses})
	if err != nil {
		return reply{}, err
	}
	res := &sdk.CallToolResult{RequestState: got.RequestState, InputRequests: got.InputRequests}
	for _, c := range got.Contents {
		if len(got.Contents) > 1 {
			res.Content = append(res.Content, &sdk.TextContent{Text: clean(c.URI, maxDescription) + ":"})
		}
		res.Content = append(res.Content, cleanContent(&sdk.EmbeddedResource{Resource: c}))
	}
	return reply{res, got.NeedsInput()}, nil
}

func listResources(ctx context.Context, client *sdk.ClientSession) (reply, error) {
	all, err := entries(func(cursor string) (any, string, error) {
		page, err := client.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.Resources, page.NextCursor, nil
	})
	if err != nil {
		return reply{}, err
	}
	templates, err := entries(func(cursor string) (any, string, error) {
		page, err := client.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.ResourceTemplates, page.NextCursor, nil
	})
	if wrong, is := errors.AsType[*jsonrpc.Error](err); err != nil && (!is || wrong.Code != jsonrpc.CodeMethodNotFound) {
		return reply{}, err
	}
	return asResult(append(all, templates...))
}

func prompts(ctx context.Context, client *sdk.ClientSession, p *sdk.CallToolParams) (reply, error) {
	var args struct {
		Name      string
		Arguments map[string]string
	}
	if err := decodeArgs(p, &args); err != nil {
		return reply{}, err
	}
	if args.Name == "" {
		return listPrompts(ctx, client)
	}
	got, err := client.GetPrompt(ctx, &sdk.GetPromptParams{Meta: p.Meta, Name: args.Name, Arguments: args.Arguments, RequestState: p.RequestState, InputResponses: p.InputResponses})
	if err != nil {
		return reply{}, err
	}
	res := &sdk.CallToolResult{RequestState: got.RequestState, InputRequests: got.InputRequests}
	for _, m := range got.Messages {
		res.Content = append(res.Content, &sdk.TextContent{Text: clean(string(m.Role), maxDescription) + ":"}, cleanContent(m.Content))
	}
	return reply{res, got.NeedsInput()}, nil
}

func listPrompts(ctx context.Context, client *sdk.ClientSession) (reply, error) {
	all, err := entries(func(cursor string) (any, string, error) {
		page, err := client.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.Prompts, page.NextCursor, nil
	})
	if err != nil {
		return reply{}, err
	}
	return asResult(all)
}

func decodeArgs(p *sdk.CallToolParams, into any) error {
	args, _ := p.Arguments.(json.RawMessage)
	if err := json.Unmarshal(args, into); err != nil {
		return &tool.Error{Type: event.ErrorInvalidArgs, Message: err.Error(), NothingCame: true}
	}
	return nil
}

// cleanContent returns content without invisible characters in its text.
func cleanContent(c sdk.Content) sdk.Content {
	switch c := c.(type) {
	case *sdk.TextContent:
		return &sdk.TextContent{Text: clean(c.Text, math.MaxInt)}
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			r := *c.Resource
			r.Text = clean(r.Text, math.MaxInt)
			return &sdk.EmbeddedResource{Resource: &r}
		}
	}
	return c
}
