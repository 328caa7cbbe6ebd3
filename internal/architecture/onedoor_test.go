package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// users lists, for each name, the functions of a package in which a selector of
// that name stands: a call, or the function as a value.
func users(t *testing.T, dir string, names ...string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			in := "a variable"
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				in = decl.Name.Name
			case *ast.GenDecl:
				if decl.Tok == token.TYPE {
					continue
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if ok && slices.Contains(names, sel.Sel.Name) && !slices.Contains(found[sel.Sel.Name], in) {
					found[sel.Sel.Name] = append(found[sel.Sel.Name], in)
				}
				return true
			})
		}
	}
	return found
}

// A model is called in one function, and that is reached on one way, past the
// check that the budget has admitted the call. Adapters are the models, and an
// adapter of another one stands in its place.
func TestThereIsOneDoorToAModelAndTheBudgetStandsAtIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}}", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	ways := map[string]map[string][]string{
		"internal/engine":         {"AskModel": {"beginModel"}},
		"internal/engine/perform": {"Generate": {"generate"}, "Stream": {"generate"}},
	}
	seen := false
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg, _ := local(path)
		if within(pkg, []string{"llm"}) || within(pkg, beside) {
			continue
		}
		calls := users(t, dir, "Generate", "Stream", "AskModel")
		if diff := cmp.Diff(ways[pkg], calls, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("models are called in %s (-want +got):\n%s", pkg, diff)
		}
		for way, in := range map[string][2]string{"internal/engine": {"Given", "beginModel"}, "internal/engine/perform": {"generate", "Do"}} {
			if pkg != way {
				continue
			}
			seen = true
			if diff := cmp.Diff(map[string][]string{in[0]: {in[1]}}, users(t, dir, in[0])); diff != "" {
				t.Errorf("the way to the model is another (-want +got):\n%s", diff)
			}
		}
	}
	if !seen {
		t.Error("the effects were not looked at")
	}
}
