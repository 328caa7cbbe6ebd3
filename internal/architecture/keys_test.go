package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
)

// jsonPackages hold the types of which --json, the events and the HTTP API are made,
// but for the configuration that the first event of a run pins: that has the keys of
// the files.
var jsonPackages = []string{
	"event", "llm", "budget", "journal", "models", "internal/cli", "internal/server", "internal/engine", "internal/engine/control", "internal/engine/drive", "internal/evaluation",
	"internal/rules/access", "internal/rules/eval", "internal/rules/plan", "internal/rules/question", "internal/host/tokens", "internal/machine/goal",
}

// otherKeys are the keys that are not written like this one, with the reason.
var otherKeys = map[string]string{
	"final_output": outcomeKey, "last_output": outcomeKey, "next_safe_action": outcomeKey,
	"x-pawl-role": extension, "x-pawl-event": extension, "x-pawl-problems": extension,
}

const (
	outcomeKey = "of the outcome, as ALDO has it"
	extension  = "of an OpenAPI document, where extensions begin with x-"
	setting    = "of a file, as ALDO has it"
)

var camelCase = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

func TestKeysOfJSONFollowOneHabit(t *testing.T) {
	seen := map[string]bool{}
	allowed := maps.Clone(otherKeys)
	for _, name := range budget.Settings() {
		if strings.Contains(name, "_") {
			allowed[name] = setting
		}
	}
	for _, dir := range jsonPackages {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files (%v)", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok || field.Tag == nil {
					return true
				}
				tag, err := strconv.Unquote(field.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if key == "" || key == "-" || camelCase.MatchString(key) {
					return true
				}
				if seen[key] = true; allowed[key] == "" {
					t.Errorf("%s: the key %q is not in camelCase", set.Position(field.Pos()), key)
				}
				return true
			})
		}
	}
	for key := range allowed {
		if !seen[key] {
			t.Errorf("no type has the key %q", key)
		}
	}
}
