package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

// drives reports the methods that make a loop: asking a machine what is due, and
// calling a model. A caller outside the engine has a loop of its own.
func drives(called types.Object) bool {
	if called.Pkg() == nil {
		return false
	}
	switch pkg := called.Pkg().Path(); {
	case within(pkg, []string{module + "/internal/machine"}):
		return called.Name() == "Next"
	case within(pkg, []string{module + "/llm"}):
		return called.Name() == "Generate" || called.Name() == "Stream"
	}
	return false
}

// Everything above the drivers reaches a model through the one engine: the
// library, the command line, and every surface that is added to the layers.
//
// rows: ALDO-2
func TestNothingAboveTheEngineHasALoopOfItsOwn(t *testing.T) {
	for i := slices.IndexFunc(layers, func(l layer) bool { return l.name == "drivers" }); i < len(layers); i++ {
		for _, pkg := range layers[i].packages {
			if pkg == "internal/engine" {
				continue
			}
			path := module
			if pkg != "" {
				path += "/" + pkg
			}
			info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
			check(t, path, info, func(fset *token.FileSet, f *ast.File) {
				ast.Inspect(f, func(n ast.Node) bool {
					sel, ok := n.(*ast.SelectorExpr)
					if !ok || info.Selections[sel] == nil {
						return true
					}
					if called := info.Selections[sel].Obj(); drives(called) {
						t.Errorf("%s: %s.%s is called outside the engine", fset.Position(sel.Pos()), called.Pkg().Name(), called.Name())
					}
					return true
				})
			})
		}
	}
}
