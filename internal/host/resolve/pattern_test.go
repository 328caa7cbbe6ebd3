package resolve_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A pattern is compiled when a command line first needs it, which is too late
// to find out that it cannot be.
func TestEveryPatternCompiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if callee, ok := call.Fun.(*ast.Ident); ok && callee.Name == "newPattern" {
				found++
				if _, err := regexp.Compile(literal(t, call.Args[0])); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d patterns were found", found)
	}
}

// literal is the value of strings that are written one behind the other.
func literal(t *testing.T, e ast.Expr) string {
	t.Helper()
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		return s
	case *ast.BinaryExpr:
		return literal(t, e.X) + literal(t, e.Y)
	}
	t.Fatalf("a pattern is not written out: %T", e)
	return ""
}
