package schema

import (
	_ "embed"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/internal/files/spec"
)

//go:embed properties.yaml
var propertiesYAML []byte

// property documents a key. Example is a fragment of the mapping that contains the key.
type property struct {
	About   string `yaml:"about"`
	Example string `yaml:"example"`
}

// properties documents keys, by the type that contains them.
type properties map[string]map[string]property

func readProperties() (properties, error) {
	var all properties
	if err := yaml.Unmarshal(propertiesYAML, &all); err != nil {
		return nil, fmt.Errorf("schema: read the descriptions: %w", err)
	}
	return all, nil
}

// of returns the documentation of a key of a type. The settings of an agent and of
// a refinement loop are documented once for both places.
func (all properties) of(name, key string) property {
	p, own := all[name][key]
	for _, shared := range []reflect.Type{reflect.TypeFor[spec.Settings](), reflect.TypeFor[spec.LoopSettings]()} {
		if !own {
			p, own = all[shared.Name()][key]
		}
	}
	if limit, is := budget.Find(key); is {
		p = property{About: limit.About, Example: key + ": " + limit.Example}
	}
	return p
}

// describe adds the documentation of a key to its schema.
func (p property) describe(key string, s schema) error {
	if p.About != "" {
		s["description"] = p.About
	}
	if p.Example == "" {
		return nil
	}
	var fragment map[string]any
	if err := yaml.Unmarshal([]byte(p.Example), &fragment); err != nil {
		return fmt.Errorf("schema: the example of %s: %w", key, err)
	}
	s["examples"] = []any{fragment[key]}
	return nil
}
