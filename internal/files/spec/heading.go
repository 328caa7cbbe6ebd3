package spec

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// Heading holds the keys of a file that determine its kind.
type Heading struct {
	// Kind is the value of "kind", and Keys are the top-level keys.
	Kind string
	Keys map[string]bool

	// Loops reports that a refinement loop is enabled.
	Loops bool

	Name, Version, Description string
}

// Agent reports whether the file is an agent's, valid or not. A file with steps is a
// workflow, whatever its kind.
func (h Heading) Agent() bool {
	switch {
	case h.Keys["steps"], h.Team(), h.Loop():
		return false
	case h.Kind != "":
		return h.Kind == "Agent"
	}
	return h.Keys["identity"] || h.Keys["model_policy"] || h.Keys["prompt"]
}

// Team reports whether the file is a team's, valid or not.
func (h Heading) Team() bool {
	return h.Keys["composite"] && !h.Keys["steps"] && (h.Kind == "" || h.Kind == "Agent")
}

// Loop reports whether the file is an agent's with an enabled refinement loop, valid or
// not.
func (h Heading) Loop() bool {
	return h.Loops && !h.Keys["steps"] && !h.Keys["composite"] && (h.Kind == "" || h.Kind == "Agent")
}

// Workflow reports whether the file is a workflow's, valid or not.
func (h Heading) Workflow() bool { return h.Keys["steps"] || h.Kind == "Workflow" }

// Goal reports whether the file is a goal's, valid or not.
func (h Heading) Goal() bool { return h.Kind == "Goal" && !h.Keys["steps"] }

// ParseHeading parses the heading of a file, even if the rest is invalid. It is empty
// for a text without keys.
func ParseHeading(text []byte) Heading {
	h, _ := ReadHeading(text)
	return h
}

// ReadHeading is [ParseHeading] with an error for a text that is not YAML.
func ReadHeading(text []byte) (Heading, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return Heading{}, fmt.Errorf("spec: no YAML: %w", err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return Heading{}, nil
	}
	file := doc.Content[0]
	identity := valueOf(file, "identity")
	h := Heading{
		Kind: textOf(file, "kind"), Keys: map[string]bool{}, Name: cmp.Or(textOf(identity, "name"), textOf(file, "name")),
		Version:     cmp.Or(textOf(identity, "version"), textOf(file, "version")),
		Description: strings.TrimSpace(cmp.Or(textOf(identity, "description"), textOf(file, "description"))),
	}
	d := &decode.Decoder{Report: decode.New("")}
	for _, p := range d.Pairs(file, "") {
		h.Keys[p.Key.Value] = true
	}
	if enabled := valueOf(valueOf(file, "loop"), "loopEnabled"); enabled != nil {
		// An error in one place does not affect the others.
		_ = enabled.Decode(&h.Loops)
	}
	return h, nil
}

// valueOf returns the value of a key of a mapping, nil for none. It does not decode the
// file, because decoding compares each of its keys with all others.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	d := &decode.Decoder{Report: decode.New("")}
	for _, p := range d.Pairs(n, "") {
		if p.Key.Value != key {
			continue
		}
		if p.Value.Kind == yaml.AliasNode {
			return p.Value.Alias
		}
		return p.Value
	}
	return nil
}

// textOf returns the text of a key of a mapping, "" for none.
func textOf(n *yaml.Node, key string) string {
	v := valueOf(n, key)
	if v == nil || v.Kind != yaml.ScalarNode || decode.IsNull(v) {
		return ""
	}
	return v.Value
}
