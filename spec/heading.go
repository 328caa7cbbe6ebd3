package spec

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// Heading is what an agent file says of itself.
type Heading struct{ Name, Version, Description string }

// ReadHeading reads the heading of an agent file, also of one that is wrong
// elsewhere. ok is false for a file that is no agent's, because it cannot be
// read or has none of the keys by which an agent is known.
func ReadHeading(path string) (h Heading, ok bool) {
	text, err := readFile(path)
	if err != nil {
		return Heading{}, false
	}
	return ParseHeading(text)
}

// ParseHeading is [ReadHeading] of a file's content.
func ParseHeading(text []byte) (h Heading, ok bool) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return Heading{}, false
	}
	root := doc.Content[0]
	switch kind := scalarOf(root, "kind"); {
	case kind == "Agent":
	case kind != "" || hasKey(root, "steps"):
		return Heading{}, false
	case !hasKey(root, "identity") && !hasKey(root, "model_policy") && !hasKey(root, "prompt"):
		return Heading{}, false
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "identity" {
			identity := root.Content[i+1]
			h = Heading{scalarOf(identity, "name"), scalarOf(identity, "version"), strings.TrimSpace(scalarOf(identity, "description"))}
		}
	}
	return h, true
}
