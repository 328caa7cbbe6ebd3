package expr

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// schemas holds the types of steps and of the schemas of their results.
type schemas struct {
	types.Provider
	fields map[string]map[string]*cel.Type
}

// step returns the type of a finished step.
func (s *schemas) step(id string, of Step) *cel.Type {
	fields := map[string]*cel.Type{"content": cel.StringType, "status": cel.StringType, "result": s.result(of.Result)}
	if of.ForEach {
		fields["results"] = cel.ListType(cel.DynType)
	}
	return s.object("step "+id, fields)
}

func (s *schemas) object(name string, fields map[string]*cel.Type) *cel.Type {
	name = fmt.Sprintf("%s#%d", name, len(s.fields))
	s.fields[name] = fields
	return cel.ObjectType(name)
}

// jsonSchema is the part of a schema that determines a type. Other keywords leave the
// type open.
type jsonSchema struct {
	Type                 any                   `json:"type"`
	Properties           map[string]jsonSchema `json:"properties"`
	AdditionalProperties json.RawMessage       `json:"additionalProperties"`
	Items                *jsonSchema           `json:"items"`
	PatternProperties    json.RawMessage       `json:"patternProperties"`
	AllOf                json.RawMessage       `json:"allOf"`
	AnyOf                json.RawMessage       `json:"anyOf"`
	OneOf                json.RawMessage       `json:"oneOf"`
	If                   json.RawMessage       `json:"if"`
	Ref                  json.RawMessage       `json:"$ref"`
}

// result returns the type of a result by its schema, nil for none.
func (s *schemas) result(schema json.RawMessage) *cel.Type {
	var of jsonSchema
	if len(schema) == 0 || json.Unmarshal(schema, &of) != nil {
		return cel.DynType
	}
	return s.of(of)
}

func (s *schemas) of(j jsonSchema) *cel.Type {
	for _, other := range [][]byte{j.PatternProperties, j.AllOf, j.AnyOf, j.OneOf, j.If, j.Ref} {
		if len(other) > 0 {
			return cel.DynType
		}
	}
	switch j.Type {
	case "string":
		return cel.StringType
	case "boolean":
		return cel.BoolType
	case "array":
		if j.Items == nil {
			return cel.ListType(cel.DynType)
		}
		return cel.ListType(s.of(*j.Items))
	case "object":
		// A model fills in what a schema names, so another name is a mistake, unless
		// the schema allows others.
		open := len(j.AdditionalProperties) > 0 && string(j.AdditionalProperties) != "false"
		if open || len(j.Properties) == 0 {
			return cel.MapType(cel.StringType, cel.DynType)
		}
		fields := map[string]*cel.Type{}
		for name, property := range j.Properties {
			fields[name] = s.of(property)
		}
		return s.object("object", fields)
	}
	// A JSON number may be whole in one run and a fraction in another.
	return cel.DynType
}

// FindStructType finds a type by its name.
func (s *schemas) FindStructType(name string) (*types.Type, bool) {
	if _, ours := s.fields[name]; ours {
		return types.NewTypeTypeWithParam(cel.ObjectType(name)), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldNames lists the fields of a type.
func (s *schemas) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ours := s.fields[name]; ours {
		return slices.Sorted(maps.Keys(fields)), true
	}
	return s.Provider.FindStructFieldNames(name)
}

// FindStructFieldType returns the type of a field.
func (s *schemas) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if fields, ours := s.fields[name]; ours {
		t, ok := fields[field]
		return &types.FieldType{Type: t}, ok
	}
	return s.Provider.FindStructFieldType(name, field)
}
