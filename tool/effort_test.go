package tool_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/tool"
)

// expression is a schema of what many tools take: a tree of operations, each form
// of which holds the tree again.
func expression(t *testing.T, keyword string) *tool.Schema {
	t.Helper()
	form := func(op string) string {
		return `{"type":"object","properties":{"op":{"const":"` + op + `"},"of":{"$ref":"#/$defs/e"}},"required":["op","of"]}`
	}
	s, err := tool.CompileSchema(json.RawMessage(`{"$ref":"#/$defs/e","$defs":{"e":{"` + keyword + `":[{"type":"number"},` +
		form("not") + `,` + form("neg") + `,` + form("abs") + `,` + form("len") + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func nested(depth int, leaf string) json.RawMessage {
	return json.RawMessage(strings.Repeat(`{"op":"len","of":`, depth) + leaf + strings.Repeat("}", depth))
}

func TestAlternativesWithinAlternativesAreCheckedWithinABound(t *testing.T) {
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		s := expression(t, keyword)
		for _, leaf := range []string{"1", "true"} {
			if err := s.Validate(nested(40, leaf)); err == nil || !strings.Contains(err.Error(), "too deep") {
				t.Errorf("%s, %s: %.200v", keyword, leaf, err)
			}
		}
		if keyword == "allOf" {
			continue
		}
		if err := s.Validate(nested(4, "1")); err != nil { // after one that was given up
			t.Errorf("%s: %v", keyword, err)
		}
	}
}

func TestAValueThatIsOnlyLargeIsCheckedWhole(t *testing.T) {
	s, err := tool.CompileSchema(json.RawMessage(`{"items":{"$ref":"#/$defs/n"},"$defs":{"n":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	items := strings.Repeat(`12345,`, 200_000)
	if err := s.Validate(json.RawMessage("[" + items + "1]")); err != nil {
		t.Errorf("%.200v", err)
	}
	if err := s.Validate(json.RawMessage("[" + items + "true]")); err == nil || !strings.Contains(err.Error(), "/200000") {
		t.Errorf("%.200v", err)
	}
}

func TestASchemaIsSharedByManyAtOnce(t *testing.T) {
	s := expression(t, "anyOf")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				if err := s.Validate(nested(3, "1")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
