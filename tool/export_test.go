package tool

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// CompileSchemaWith compiles a schema that may refer to what loader returns: only the
// official suite needs remote documents.
func CompileSchemaWith(raw json.RawMessage, loader jsonschema.URLLoader) (*Schema, error) {
	return compile(raw, loader)
}

// Parse reads arguments the way validation and digests do.
func Parse(raw []byte) (any, error) { return parse(raw) }
