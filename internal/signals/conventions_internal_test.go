package signals

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/models"
)

// conventions is the directory of OpenTelemetry's GenAI conventions as of May 2026, the
// dialect that back ends support. It does not contain the renames of the newer dialect.
const conventions = "../../../shared/fixtures/otel-genai/model/gen-ai"

type model struct {
	Attributes []struct {
		Key  string
		Type struct {
			Members []struct{ Value string }
		}
	}
	AttributeGroups []struct {
		ID         string
		Attributes []reference
	} `yaml:"attribute_groups"`
	Metrics []metricModel
}

type metricModel struct {
	Name, Instrument, Unit string
	Annotations            struct {
		CodeGeneration struct {
			Type string `yaml:"metric_value_type"`
		} `yaml:"code_generation"`
	}
	Attributes []reference
}

// reference refers to an attribute or to a group of attributes.
type reference struct {
	Ref   string
	Group string `yaml:"ref_group"`
}

func readModel(t *testing.T, name string) (m model) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(conventions, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the conventions are not here: ", conventions)
	}
	if err != nil {
		t.Fatal(err)
	}
	// Only the members of enumerated types have another shape.
	_ = yaml.Unmarshal(text, &m)
	return m
}

// attributes returns the attributes that references lead to.
func (m *model) attributes(refs []reference) (out []string) {
	for _, r := range refs {
		if r.Ref != "" {
			out = append(out, r.Ref)
			continue
		}
		for _, g := range m.AttributeGroups {
			if g.ID == r.Group {
				out = append(out, m.attributes(g.Attributes)...)
			}
		}
	}
	return out
}

func TestTheNamesAreThoseOfTheConventions(t *testing.T) {
	m := readModel(t, "registry.yaml")
	var known []string
	for _, a := range m.Attributes {
		known = append(known, a.Key)
	}
	for _, ours := range models.KnownProviders() {
		theirs := models.TelemetryName(ours)
		if theirs != ours && !slices.ContainsFunc(m.Attributes[0].Type.Members, func(m struct{ Value string }) bool { return m.Value == theirs }) {
			t.Errorf("the conventions have no provider %s, as %s is called", theirs, ours)
		}
	}
	if len(known) < 40 {
		t.Fatalf("the registry has %v", known)
	}
	for term, n := range names() {
		if name := n[stable]; strings.HasPrefix(name, "gen_ai.") && !slices.Contains(known, name) {
			t.Errorf("attribute %d: the conventions have no %s", term, name)
		}
	}
}

func TestTheMetricsAreThoseOfTheConventions(t *testing.T) {
	m := readModel(t, "metrics.yaml")
	m.AttributeGroups = append(m.AttributeGroups, readModel(t, "spans.yaml").AttributeGroups...)
	told := map[measure][]term{
		callDuration: {operation, provider, requestModel, responseModel, errorType},
		firstChunk:   {operation, provider, requestModel},
		nextChunk:    {operation, provider, requestModel},
		tokenUsage:   {operation, provider, requestModel, responseModel, tokenType},
	}
	for what, i := range instruments() {
		name := i.name[stable]
		if name == "" {
			continue
		}
		at := slices.IndexFunc(m.Metrics, func(x metricModel) bool { return x.Name == name })
		if at < 0 {
			t.Errorf("the conventions have no %s", name)
			continue
		}
		is := m.Metrics[at]
		if number := map[bool]string{true: "int", false: "double"}[i.whole]; i.sum || is.Instrument != "histogram" || is.Unit != i.unit || is.Annotations.CodeGeneration.Type != number {
			t.Errorf("%s is %+v in the conventions, and %+v here", name, is, i)
		}
		has := m.attributes(is.Attributes)
		for _, term := range told[measure(what)] {
			if key := names()[term][stable]; !slices.Contains(has, key) {
				t.Errorf("%s has no %s in the conventions, but %v", name, key, has)
			}
		}
		if len(told[measure(what)]) == 0 {
			t.Errorf("nothing is known of %s", name)
		}
	}
}
