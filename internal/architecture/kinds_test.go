package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The table of kinds is the only way to the functions of package launch that belong to
// one kind: no package above the table calls them.
func TestSurfacesAskTheTableOfKinds(t *testing.T) {
	ofOneKind := []string{"Agent", "AgentFiles", "WorkflowFiles", "Check", "Explain", "Environment", "Continue", "Fork", "Redactor", "CheckCall"}
	asked := 0
	for _, dir := range []string{"internal/cli", "internal/server", "internal/engine/control"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				switch pkg, _ := sel.X.(*ast.Ident); {
				case pkg == nil:
				case pkg.Name == "kinds":
					asked++
				case pkg.Name == "launch" && slices.Contains(ofOneKind, sel.Sel.Name):
					t.Errorf("%s uses launch.%s; ask package launch/kinds, which knows all kinds", name, sel.Sel.Name)
				}
				return true
			})
		}
	}
	if asked == 0 {
		t.Error("nobody asks the table")
	}
}
