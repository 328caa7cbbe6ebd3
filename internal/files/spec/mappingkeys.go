package spec

import (
	"go.yaml.in/yaml/v4"
)

// pair is one key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs lists what a mapping holds, merged mappings last and only where the
// mapping does not say otherwise.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	var own, merged []pair
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1]}
		switch {
		case p.key.Tag == "!!merge":
			merged = append(merged, d.merged(p.value, path)...)
			continue
		case p.key.Kind != yaml.ScalarNode || p.key.Tag == "!!null":
			d.fail(p.key, path, "a text as key", "a key is %s", describe(p.key))
			continue
		case seen[p.key.Value]:
			d.fail(p.key, join(path, p.key.Value), "", "the key is given twice")
			continue
		}
		seen[p.key.Value] = true
		own = append(own, p)
	}
	for _, p := range merged {
		if !seen[p.key.Value] {
			seen[p.key.Value] = true
			own = append(own, p)
		}
	}
	return own
}

// merged lists the pairs of the mapping, or list of mappings, behind a "<<".
func (d *decoder) merged(n *yaml.Node, path string) []pair {
	if d.exhausted(n, path) {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.pairs(n, path)
	case yaml.SequenceNode:
		var out []pair
		for _, item := range n.Content {
			out = append(out, d.merged(item, path)...)
		}
		return out
	}
	d.fail(n, join(path, "<<"), "a mapping or a list of mappings", "is %s", describe(n))
	return nil
}
