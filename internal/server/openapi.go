package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/compare"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/rules/access"
	"github.com/pawlrun/pawl/internal/rules/plan"
	"github.com/pawlrun/pawl/internal/server/agui"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// document describes the server's operations in OpenAPI 3.1.
type document struct {
	OpenAPI string `json:"openapi"`
	Info    struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	// Paths holds the operations by path and method.
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas         map[string]*jsonschema.Schema `json:"schemas"`
		SecuritySchemes map[string]securityScheme     `json:"securitySchemes"`
	} `json:"components"`
	// Security lists the authentication schemes, of which one is enough.
	Security []map[string][]string `json:"security"`
}

// securityScheme is an authentication scheme.
type securityScheme struct {
	Type   string `json:"type"`
	Scheme string `json:"scheme"`
}

// described is an operation in the document.
type described struct {
	ID          string              `json:"operationId"`
	Summary     string              `json:"summary"`
	Role        access.Role         `json:"x-pawl-role"`
	Event       string              `json:"x-pawl-event,omitempty"`
	Parameters  []parameter         `json:"parameters,omitempty"`
	RequestBody *content            `json:"requestBody,omitempty"`
	Responses   map[string]*content `json:"responses"`
}

type parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// content is the body of a request or of an answer.
type content struct {
	Description string               `json:"description,omitempty"`
	Content     map[string]mediaType `json:"content,omitempty"`
	// Problems names the problems that an answer may be.
	Problems []string `json:"x-pawl-problems,omitempty"`
}

type mediaType struct {
	Schema *jsonschema.Schema `json:"schema"`
}

// openAPI gives the document.
func (s *Server) openAPI(*apiRequest[none, none]) (document, error) { return s.document() }

// documentOf returns the document of a table.
func documentOf(table []operation) (document, error) {
	d := document{OpenAPI: "3.1.1", Paths: map[string]map[string]described{}}
	d.Info.Title, d.Info.Version = "Pawl", "1"
	d.Info.Description = "Runs of agents, workflows and teams. x-pawl-role is the least role that may ask an operation, and x-pawl-event is its event at " + socketPath + ", where agentId is in the data."
	// A server without tokens identifies the client by its connection.
	d.Components.SecuritySchemes = map[string]securityScheme{"token": {"http", "bearer"}}
	d.Security = []map[string][]string{{"token": {}}, {}}
	w := schemaWriter{known: fixedSchemas()}
	d.Components.Schemas = map[string]*jsonschema.Schema{}
	for _, c := range components() {
		schema, err := w.of(c.of)
		if err != nil {
			return d, err
		}
		d.Components.Schemas[c.name] = schema
		w.known[c.of] = &jsonschema.Schema{Ref: "#/components/schemas/" + c.name}
	}
	for _, o := range table {
		about, err := w.describe(o)
		if err != nil {
			return d, err
		}
		if d.Paths[o.path] == nil {
			d.Paths[o.path] = map[string]described{}
		}
		d.Paths[o.path][strings.ToLower(o.method)] = about
	}
	return d, nil
}

// component is a named type of the document.
type component struct {
	of   reflect.Type
	name string
}

// components returns the named types; a type comes before the types that it is part
// of.
func components() []component {
	return []component{
		{reflect.TypeFor[eventJSON](), "Event"}, {reflect.TypeFor[control.Pending](), "Question"}, {reflect.TypeFor[Problem](), "Problem"},
		{reflect.TypeFor[refusal](), "Refusal"}, {reflect.TypeFor[journal.Run](), "Run"}, {reflect.TypeFor[runItem](), "RunInList"},
		{reflect.TypeFor[runnable](), "File"}, {reflect.TypeFor[commandResult](), "Delivery"}, {reflect.TypeFor[runDetail](), "RunInFull"},
		{reflect.TypeFor[branch](), "RunInTree"}, {reflect.TypeFor[liveJSON](), "LiveEvent"}, {reflect.TypeFor[snapshot](), "Snapshot"},
		{reflect.TypeFor[agui.Event](), "AGUIEvent"}, {reflect.TypeFor[view.Entry](), "Entry"}, {reflect.TypeFor[changedEntry](), "ChangedEntry"},
		{reflect.TypeFor[place](), "Place"}, {reflect.TypeFor[questionChange](), "QuestionChange"},
		{reflect.TypeFor[removedRun](), "RemovedRun"}, {reflect.TypeFor[view.Effect](), "Effect"}, {reflect.TypeFor[forkItem](), "RunInFamily"},
	}
}

// fixedSchemas returns the schemas of types whose JSON form does not follow from
// their fields.
func fixedSchemas() map[reflect.Type]*jsonschema.Schema {
	one, most, longest := 1.0, float64(pageMost), float64(longestWait)
	var states []any
	for _, s := range journal.States() {
		states = append(states, s)
	}
	text := &jsonschema.Schema{Type: "string"}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[size]():            {Type: "integer", Minimum: &one, Maximum: &most, Default: json.RawMessage(strconv.Itoa(pageDefault))},
		reflect.TypeFor[seconds]():         {Type: "integer", Minimum: &one, Maximum: &longest},
		reflect.TypeFor[journal.State]():   {Type: "string", Enum: states},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[document]():        {Type: "object", Required: []string{"openapi", "info", "paths"}},
		reflect.TypeFor[control.Pending](): {
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"id": text, "kind": text, "run": text, "path": {Type: "array", Items: text}, "step": text, "reason": text, "digest": text,
				"rule": text, "risk": text, "offer": {Type: "object", Description: "The rule that the answer may accept for the rest of the run with remember."}, "seq": {Type: "integer"},
				"since": {Type: "string", Format: "date-time"}, "expiresAt": {Type: "string", Format: "date-time"}, "what": {},
			},
			Required: []string{"id", "kind", "run", "path", "reason", "digest", "what"}, AdditionalProperties: noOther(),
		},
		reflect.TypeFor[eventJSON](): {
			Type: "object", Description: "An event of a journal; docs/events.md has the data of each type.",
			Properties: map[string]*jsonschema.Schema{
				"pos": {Type: "integer"}, "seq": {Type: "integer"}, "run": text, "parent": text, "time": {Type: "string", Format: "date-time"},
				"skippedMs": {Type: "integer"}, "type": text, "cycle": {Type: "integer"}, "step": text, "data": {Type: "object"}, "prev": text,
			},
			Required: []string{"pos", "seq", "run", "time", "type", "data"}, AdditionalProperties: noOther(),
		},
		reflect.TypeFor[liveJSON](): {
			Type: "object", Description: "An event that is in no journal: text, reasoning, tool_call.delta, text.reset, tool.progress or tool.output.",
			Properties: map[string]*jsonschema.Schema{
				"run": text, "parent": text, "time": {Type: "string", Format: "date-time"}, "type": text, "cycle": {Type: "integer"}, "step": text, "data": {Type: "object"},
			},
			Required: []string{"run", "time", "type", "data"}, AdditionalProperties: noOther(),
		},
		reflect.TypeFor[agui.Event](): {
			Type: "object", Description: "An event of AG-UI " + agui.Version + ".",
			Properties: map[string]*jsonschema.Schema{"type": {Type: "string", Pattern: "^[A-Z_]+$"}}, Required: []string{"type"},
		},
		reflect.TypeFor[event.Taint](): {Type: "object"},
		// These contain themselves.
		reflect.TypeFor[plan.Plan]():          {Type: "object", Description: "The steps of a run, as its first event has them."},
		reflect.TypeFor[[]compare.Diff]():     {Type: "array", Items: &jsonschema.Schema{Type: "object", Description: "A comparison like this one."}},
		reflect.TypeFor[[]control.Verified](): {Type: "array", Items: &jsonschema.Schema{Type: "object", Description: "A check like this one."}},
	}
}

// noOther is the schema that no value satisfies.
func noOther() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// schemaWriter derives schemas from types. Known types keep their schemas.
type schemaWriter struct {
	known map[reflect.Type]*jsonschema.Schema
}

// of returns the JSON schema of a type.
func (w schemaWriter) of(t reflect.Type) (*jsonschema.Schema, error) {
	known := map[reflect.Type]*jsonschema.Schema{}
	for k, s := range w.known {
		known[k] = s
	}
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous { // the embedded fields belong to this type
				delete(known, f.Type)
			}
		}
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, fmt.Errorf("server: the schema of %s: %w", t, err)
	}
	withoutNull(schema)
	return schema, nil
}

// withoutNull removes null from a schema: answers omit nil pointers and lists, and
// bodies may not contain null.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
	if len(s.Types) == 1 {
		s.Type = s.Types[0]
	}
	if len(s.Types) < 2 {
		s.Types = nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
}

// describe returns an operation of the document.
func (w schemaWriter) describe(o operation) (described, error) {
	d := described{ID: operationID(o), Summary: o.summary, Role: o.may, Event: o.event, Responses: map[string]*content{}}
	for _, part := range strings.Split(o.path, "/") {
		if strings.HasPrefix(part, "{") {
			d.Parameters = append(d.Parameters, parameter{Name: strings.Trim(part, "{}"), In: "path", Required: true, Schema: &jsonschema.Schema{Type: "string"}})
		}
	}
	if o.method == http.MethodPost {
		d.Parameters = append(d.Parameters, parameter{
			Name: "Idempotency-Key", In: "header", Schema: &jsonschema.Schema{Type: "string", Pattern: keyForm.String()},
			Description: "for 24 hours the same request with the same key gets the same answer, and is done once",
		})
	}
	query, err := w.of(o.query)
	if err != nil {
		return d, err
	}
	for _, name := range query.PropertyOrder {
		p := query.Properties[name]
		about := p.Description
		p.Description = ""
		d.Parameters = append(d.Parameters, parameter{Name: name, In: "query", Description: about, Schema: p})
	}
	if o.body.NumField() > 0 {
		body, err := w.of(o.body)
		if err != nil {
			return d, err
		}
		d.RequestBody = &content{Content: map[string]mediaType{"application/json": {body}}}
	}
	return d, w.describeAnswers(o, &d)
}

// describeAnswers adds the possible answers of an operation.
func (w schemaWriter) describeAnswers(o operation, d *described) error {
	answer, err := w.of(o.answer)
	if err != nil {
		return err
	}
	for _, status := range append([]int{o.status}, o.also...) {
		c := &content{Description: o.summary}
		if status != http.StatusNoContent && status != http.StatusNotModified {
			c.Content = map[string]mediaType{}
			for _, media := range mediaOf(o.answer) {
				c.Content[media] = mediaType{answer}
			}
			if o.streams {
				c.Content["text/event-stream"] = mediaType{&jsonschema.Schema{AnyOf: []*jsonschema.Schema{
					w.known[reflect.TypeFor[eventJSON]()], w.known[reflect.TypeFor[liveJSON]()], w.known[reflect.TypeFor[snapshot]()], w.known[reflect.TypeFor[agui.Event]()], w.known[reflect.TypeFor[changedEntry]()],
					w.known[reflect.TypeFor[place]()], w.known[reflect.TypeFor[runItem]()], w.known[reflect.TypeFor[questionChange]()], w.known[reflect.TypeFor[removedRun]()],
				}}}
			}
		}
		d.Responses[strconv.Itoa(status)] = c
	}
	for _, k := range o.all() {
		status := strconv.Itoa(k.status)
		if d.Responses[status] == nil {
			d.Responses[status] = &content{Content: map[string]mediaType{"application/problem+json": {w.known[o.problem()]}}}
		}
		c := d.Responses[status]
		c.Problems = append(c.Problems, k.name)
		c.Description = strings.TrimPrefix(c.Description+"; "+k.title, "; ")
	}
	return nil
}

// mediaOf returns the media types of an answer.
func mediaOf(answer reflect.Type) []string {
	switch answer {
	case reflect.TypeFor[exposition]():
		return []string{"text/plain"}
	case reflect.TypeFor[exportedRun]():
		return []string{"application/jsonl"}
	case reflect.TypeFor[markup]():
		return []string{"text/html"}
	case reflect.TypeFor[bundled]():
		return []string{"text/javascript", "text/css", "text/plain", "image/svg+xml"}
	}
	return []string{"application/json"}
}

// operationID returns an operation's name in generated clients: "getRunsEvents".
func operationID(o operation) string {
	id := strings.ToLower(o.method)
	for _, part := range strings.FieldsFunc(strings.TrimPrefix(o.path, "/v1"), func(r rune) bool { return strings.ContainsRune("/.{}", r) }) {
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return cmp.Or(id, o.method)
}
