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
	var file struct {
		Kind     string
		Identity struct{ Name, Version, Description string }
	}
	var keys map[string]yaml.Node
	if err := doc.Decode(&keys); err != nil {
		return Heading{}, false
	}
	// What is wrong in one place leaves the others.
	_ = doc.Decode(&file)
	has := func(key string) bool { _, ok := keys[key]; return ok }
	switch {
	case file.Kind == "Agent":
	case file.Kind != "" || has("steps"), !has("identity") && !has("model_policy") && !has("prompt"):
		return Heading{}, false
	}
	i := file.Identity
	return Heading{i.Name, i.Version, strings.TrimSpace(i.Description)}, true
}
