package spec

import (
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// Cache says what to ask of the providers' prompt caches. In a file it is a
// mapping, or the lifetime alone.
type Cache struct {
	// TTL is how long the prefix is asked to be kept; "" leaves the default, 5m.
	TTL string `yaml:"ttl,omitempty" oneof:"5m 1h off"`
}

func (c *Cache) decodeNode(d *decoder, n *yaml.Node, path string) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.object(n, path, reflect.ValueOf(c).Elem())
	case n.Tag == "!!str":
		c.TTL = n.Value
	default:
		d.fail(n, path, c.expected(), "is %s", strconv.Quote(n.Value))
	}
}

func (*Cache) expected() string { return "off, or {ttl: 5m} or {ttl: 1h}" }

// JSONSchema is the short form: the lifetime alone.
func (*Cache) JSONSchema() map[string]any {
	ttl, _ := reflect.TypeFor[Cache]().FieldByName("TTL")
	return map[string]any{"type": "string", "enum": choicesOf(ttl)}
}
