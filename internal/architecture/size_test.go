package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	iofs "io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A type with more fields has several ideas in it, and a longer function several
// steps.
const (
	maxFields        = 15
	maxFunctionLines = 80
	maxMeanLines     = 13
)

// wide are the types with more fields, by folder and name, and why.
var wide = map[string]string{
	"machine/agent.Config": "the configuration of an agent as run.started holds it: one field for each setting",
}

// The machines are read by whoever wants to know what a run does next, so their
// state is made of small values with functions of their own.
func TestMachinesAreMadeOfSmallParts(t *testing.T) {
	seen := map[string]bool{}
	functions, lines := 0, 0
	fset := token.NewFileSet()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, "machine"), func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		ast.Inspect(f, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.TypeSpec:
				s, ok := d.Type.(*ast.StructType)
				name := filepath.ToSlash(folder) + "." + d.Name.Name
				switch n := fieldsOf(s, ok); {
				case n > maxFields && wide[name] == "":
					t.Errorf("%s has %d fields, more than %d: give what belongs together a type of its own", name, n, maxFields)
				case n > maxFields:
					seen[name] = true
				}
			case *ast.FuncDecl:
				n := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
				functions, lines = functions+1, lines+n
				if n > maxFunctionLines {
					t.Errorf("%s: %s has %d lines, more than %d", fset.Position(d.Pos()), d.Name.Name, n, maxFunctionLines)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if functions == 0 || lines >= functions*maxMeanLines {
		t.Errorf("%d functions of the machines have %d lines, %d or more each", functions, lines, maxMeanLines)
	}
	for name := range wide {
		if !seen[name] {
			t.Errorf("%s is no wide type: take it off the list", name)
		}
	}
}

// fieldsOf counts the fields of a struct; an embedded type is one.
func fieldsOf(s *ast.StructType, is bool) (n int) {
	if !is {
		return 0
	}
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}
