package openaichat

import (
	"strconv"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// holdsSchema reports whether the service enforces the request's schema. Servers that
// constrain the whole answer by a grammar would prevent tool calls, or reject or ignore
// either the schema or the tools.
func (m *Model) holdsSchema(req *llm.Request) bool {
	if len(req.Schema) == 0 || req.SchemaInPrompt {
		return false
	}
	return m.profile.Format == FormatSchema || m.profile.Format == FormatSchemaAlone && len(req.Tools)+len(req.ProviderTools) == 0
}

func (m *Model) appendFormat(b []byte, req *llm.Request) []byte {
	switch {
	case m.holdsSchema(req):
		b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":`...)
		b = strconv.AppendBool(b, wire.StrictSchema(req.Schema))
		b = wire.AppendCompact(append(b, `,"schema":`...), req.Schema, "{}")
		return append(b, "}}"...)
	case len(req.Schema) > 0 && m.profile.Format == FormatObject && len(req.Tools) == 0:
		return append(b, `,"response_format":{"type":"json_object"}`...)
	}
	return b
}
