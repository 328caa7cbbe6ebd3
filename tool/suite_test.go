package tool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pawlrun/pawl/tool"
)

const suite = "../../shared/fixtures/json-schema-test-suite"

// skippedInSuite are the optional parts that do not apply, with the reason.
var skippedInSuite = map[string]string{
	"format-assertion.json": "formats are annotations, as the specification's default has it",
	"format":                "formats are annotations, as the specification's default has it",
	"content.json":          "contentEncoding and contentMediaType are annotations",
	"ecmascript-regex.json": "patterns are RE2, which cannot be made to run for ever",
}

// remotes loads the documents that the suite serves at localhost:1234. One
// that names no draft is read in the draft of the schema under test.
type remotes struct{ marker string }

func (r remotes) Load(url string) (any, error) {
	name, ok := strings.CutPrefix(url, "http://localhost:1234/")
	if !ok {
		return nil, os.ErrNotExist
	}
	f, err := os.Open(filepath.Join(suite, "remotes", filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if o, ok := doc.(map[string]any); ok && o["$schema"] == nil && r.marker != "" {
		o["$schema"] = r.marker
	}
	return doc, err
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// TestOfficialJSONSchemaSuite runs the suite of json-schema.org over what tool
// arguments are validated with, in the default draft and in a named older one.
func TestOfficialJSONSchemaSuite(t *testing.T) {
	if _, err := os.Stat(suite); err != nil {
		t.Skipf("the official suite is not here: %v", err)
	}
	for draft, marker := range map[string]string{"draft2020-12": "", "draft7": "http://json-schema.org/draft-07/schema#"} {
		t.Run(draft, func(t *testing.T) {
			var passed, skipped, failed int
			root := filepath.Join(suite, "tests", draft)
			err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				p, s, f := runSuiteFile(t, path, marker)
				passed, skipped, failed = passed+p, skipped+s, failed+f
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d passed, %d skipped, %d failed", draft, passed, skipped, failed)
			if passed < 900 {
				t.Errorf("only %d cases ran; the suite has more", passed)
			}
		})
	}
}

func runSuiteFile(t *testing.T, path, marker string) (passed, skipped, failed int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	_, file := skippedInSuite[filepath.Base(path)]
	_, folder := skippedInSuite[filepath.Base(filepath.Dir(path))]
	optional := strings.Contains(path, "/optional/")
	for _, g := range groups {
		if optional && (file || folder) {
			skipped += len(g.Tests)
			continue
		}
		s, err := tool.CompileSchemaWith(withDraft(t, g.Schema, marker), remotes{marker})
		if err != nil {
			t.Errorf("%s: %s: %v", path, g.Description, err)
			failed += len(g.Tests)
			continue
		}
		for _, c := range g.Tests {
			if err := s.Validate(c.Data); (err == nil) != c.Valid {
				t.Errorf("%s: %s: %s: valid is %v, got: %v", path, g.Description, c.Description, c.Valid, err)
				failed++
				continue
			}
			passed++
		}
	}
	return passed, skipped, failed
}

// withDraft names the draft in a schema that does not do so itself.
func withDraft(t *testing.T, schema json.RawMessage, marker string) json.RawMessage {
	t.Helper()
	var o map[string]json.RawMessage
	if marker == "" || json.Unmarshal(schema, &o) != nil || o["$schema"] != nil {
		return schema
	}
	o["$schema"], _ = json.Marshal(marker)
	out, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
