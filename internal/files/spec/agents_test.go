package spec_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestASourceSaysWhereAnAgentIsDefined(t *testing.T) {
	team := spec.SourceOf("dir/w.yaml").Of("team")
	for text, c := range map[string]struct {
		source         spec.Source
		name           string
		within, nested bool
	}{
		"a.yaml":                              {spec.Source{File: "a.yaml"}, "", false, false},
		"":                                    {spec.Source{}, "", false, false},
		"dir/w.yaml#agents.team":              {team, "team", true, false},
		"dir/w.yaml#agents.team#agents.first": {team.Of("first"), "first", true, true},
		"#agents.last-iteration":              {spec.Source{}.Of("last-iteration"), "last-iteration", true, false},
		"x#agents.coordinator of inner":       {spec.SourceOf("x").Of("coordinator of inner"), "coordinator of inner", true, false},
	} {
		got := spec.SourceOf(text)
		if got != c.source || got.String() != text || got.Name() != c.name || got.Within() != c.within || got.Nested() != c.nested {
			t.Errorf("%q: %+v, name %q", text, got, got.Name())
		}
	}
}
