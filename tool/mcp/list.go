package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// Limits on a server's list.
const (
	maxPages       = 100
	maxTools       = 1_000
	maxDefinitions = 1 << 20
)

// list reads all pages of a server's tools.
func list(ctx context.Context, client *sdk.ClientSession) ([]*sdk.Tool, error) {
	if c := client.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, nil
	}
	return pages("tools", func(cursor string) ([]*sdk.Tool, string, error) {
		page, err := client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return page.Tools, page.NextCursor, nil
	})
}

// listError is the reason why a list of a server cannot be used.
type listError string

func (e listError) Error() string { return string(e) }

// pages reads all pages of a list, within the limits. what names the items.
func pages[T any](what string, page func(cursor string) (items []T, next string, err error)) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	cursor := ""
	for range maxPages {
		items, next, err := page(cursor)
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); len(all) > maxTools {
			return nil, listError(fmt.Sprintf("it lists more than %d %s", maxTools, what))
		}
		switch cursor = next; {
		case cursor == "":
			return all, nil
		case seen[cursor]:
			return nil, listError(fmt.Sprintf("its list of %s does not end: the cursor %q is repeated", what, clean(cursor, maxShownLine)))
		}
		seen[cursor] = true
	}
	return nil, listError(fmt.Sprintf("its list of %s has more than %d pages", what, maxPages))
}

// definition is a server's definition of a tool.
type definition struct {
	Annotations *hints `json:"annotations,omitempty"`
	Description string `json:"description,omitempty"`
	// Feature is the name of a [feature] that is offered as a tool.
	Feature      string          `json:"feature,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	Name         string          `json:"name"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Title        string          `json:"title,omitempty"`
}

// hints are a server's hints about a tool's effects; nil means no hint.
type hints struct {
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
}

// pinned returns a server with its tools in the form that a run pins.
func pinned(o Options, open *session, tools []*sdk.Tool) (event.ToolServer, error) {
	about := open.client.InitializeResult()
	pin := event.ToolServer{Server: o.Server, Protocol: about.ProtocolVersion, Argv: o.Command, URL: o.URL, Tools: []event.ServerTool{}}
	if about.ServerInfo != nil {
		pin.Name, pin.Version = clean(about.ServerInfo.Name, maxShownLine), clean(about.ServerInfo.Version, maxShownLine)
	}
	size := 0
	for _, t := range tools {
		d, err := definitionOf(t)
		if err != nil {
			return pin, fmt.Errorf("the tool %q: %w", clean(t.Name, maxShownLine), err)
		}
		if slices.ContainsFunc(pin.Tools, func(other event.ServerTool) bool { return other.Name == t.Name }) {
			return pin, fmt.Errorf("it lists the tool %q twice", clean(t.Name, maxShownLine))
		}
		if size += len(d); size > maxDefinitions {
			return pin, fmt.Errorf("the definitions of its tools have more than %d MiB", maxDefinitions>>20)
		}
		pin.Tools = append(pin.Tools, serverTool(t.Name, d))
	}
	for _, f := range features() {
		if about.Capabilities == nil || !f.has(about.Capabilities) || slices.ContainsFunc(pin.Tools, func(other event.ServerTool) bool { return other.Name == f.Name }) {
			continue
		}
		d, err := json.Marshal(f.definition)
		if err != nil {
			return pin, err
		}
		pin.Tools = append(pin.Tools, serverTool(f.Name, d))
	}
	slices.SortFunc(pin.Tools, func(a, b event.ServerTool) int { return strings.Compare(a.Name, b.Name) })
	return pin, nil
}

func serverTool(name string, definition json.RawMessage) event.ServerTool {
	sum := sha256.Sum256(definition)
	return event.ServerTool{Name: name, Digest: hex.EncodeToString(sum[:]), Definition: definition}
}

// definitionOf returns a tool in canonical JSON: members are sorted at every level.
func definitionOf(t *sdk.Tool) (json.RawMessage, error) {
	d := definition{Name: t.Name, Title: titleOf(t), Description: t.Description}
	if a := t.Annotations; a != nil {
		d.Annotations = &hints{Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint}
		if a.ReadOnlyHint {
			d.Annotations.ReadOnly = &a.ReadOnlyHint
		}
		if a.IdempotentHint {
			d.Annotations.Idempotent = &a.IdempotentHint
		}
	}
	for _, s := range []struct {
		from any
		into *json.RawMessage
	}{{t.InputSchema, &d.InputSchema}, {t.OutputSchema, &d.OutputSchema}} {
		if s.from == nil {
			continue
		}
		text, err := json.Marshal(s.from)
		if err != nil {
			return nil, err
		}
		*s.into = text
	}
	if d.InputSchema == nil {
		return nil, errors.New("it has no inputSchema")
	}
	return json.Marshal(d)
}

// titleOf returns the tool's name for people; older servers have it among the hints.
func titleOf(t *sdk.Tool) string {
	if t.Title == "" && t.Annotations != nil {
		return t.Annotations.Title
	}
	return t.Title
}

// differences returns which parts of a definition changed.
func differences(before, after json.RawMessage) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return "its definition changed"
	}
	var parts []string
	for _, name := range []string{"title", "description", "inputSchema", "outputSchema", "annotations"} {
		if string(a[name]) != string(b[name]) {
			parts = append(parts, fmt.Sprintf("%s was %s and is now %s", name, excerpt(a[name]), excerpt(b[name])))
		}
	}
	return strings.Join(parts, "; ")
}

func excerpt(text json.RawMessage) string {
	if text == nil {
		return "absent"
	}
	return clean(string(text), maxShownLine)
}

// maxDescription bounds each text of a server, in characters.
const maxDescription = 2_048

// clean removes invisible characters from a server's text, and truncates it.
func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Cf, r) || !unicode.IsPrint(r) && !unicode.IsSpace(r):
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// cleanSchema returns a schema with cleaned descriptions and titles.
func cleanSchema(raw json.RawMessage) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return json.Marshal(cleanWords(v))
}

func cleanWords(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = cleanWords(v[i])
		}
	case map[string]any:
		for name, each := range v {
			if text, ok := each.(string); ok && (name == "description" || name == "title") {
				v[name] = clean(text, maxDescription)
				continue
			}
			v[name] = cleanWords(each)
		}
	}
	return v
}

// toolOf returns a tool of the server for a run.
func (s *Server) toolOf(p event.ServerTool) (tool.Tool, error) {
	var d definition
	if err := json.Unmarshal(p.Definition, &d); err != nil {
		return tool.Tool{}, err
	}
	schema, err := cleanSchema(d.InputSchema)
	if err != nil {
		return tool.Tool{}, err
	}
	t := tool.Tool{
		Name: s.o.Server + "." + p.Name, Title: clean(d.Title, maxShownLine), Description: clean(d.Description, maxDescription), Schema: schema,
		Effect: event.EffectAtMostOnce, Risk: event.RiskUnknown, Timeout: s.o.MaxTime, Remote: s.o.URL != "",
		Labels: &event.Labels{Untrusted: true, Private: true, Outgoing: true},
		Check: func(json.RawMessage) error {
			if now := s.change(p.Name); now != nil && now.Digest == "" && s.toolsCurrent() {
				return s.changedError(now)
			}
			return nil
		},
		Facts: func(json.RawMessage) (f event.Facts) {
			if now := s.change(p.Name); now != nil && now.Digest != "" {
				f.Redefined = &event.Redefinition{Digest: now.Digest, Change: now.Change}
			}
			return f
		},
	}
	r := remote{server: s, name: p.Name, send: senderOf(d)}
	if d.OutputSchema != nil {
		if r.output, err = tool.CompileSchema(d.OutputSchema); err != nil {
			return tool.Tool{}, fmt.Errorf("its outputSchema: %w", err)
		}
	}
	t.Run = r.run
	if h := d.Annotations; s.o.TrustHints && h != nil {
		switch {
		case h.ReadOnly != nil && *h.ReadOnly:
			t.ReadOnly, t.Effect, t.Risk = true, event.EffectIdempotent, event.RiskRead
		case h.Destructive != nil && *h.Destructive:
			t.Risk = event.RiskDelete
		}
	}
	if _, err := tool.NewSet(t); err != nil {
		return tool.Tool{}, err
	}
	return t, nil
}

func (s *Server) changedError(now *event.ChangedTool) error {
	how := "A person is asked about it when it is called again"
	if now.Digest == "" {
		how = "A new run offers the tools as they are now"
	}
	return &tool.Error{
		Type: event.ErrorUnavailable, NothingCame: true,
		Message: fmt.Sprintf("the tool %s.%s is not what it was when the run began, so it is not called: %s. %s", s.o.Server, now.Name, now.Change, how),
	}
}

// Hints returns a server's hints about the effects of a tool, such as
// readOnlyHint=true.
func Hints(p event.ServerTool) []string {
	var d definition
	if json.Unmarshal(p.Definition, &d) != nil || d.Annotations == nil {
		return nil
	}
	var said []string
	for _, h := range []struct {
		name string
		is   *bool
	}{
		{"readOnlyHint", d.Annotations.ReadOnly}, {"idempotentHint", d.Annotations.Idempotent},
		{"destructiveHint", d.Annotations.Destructive}, {"openWorldHint", d.Annotations.OpenWorld},
	} {
		if h.is != nil {
			said = append(said, fmt.Sprintf("%s=%t", h.name, *h.is))
		}
	}
	return said
}
