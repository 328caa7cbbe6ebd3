package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// group is the place of an import: the standard library, other modules, our own
// packages.
func group(path string) int {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case path == module || strings.HasPrefix(path, module+"/"):
		return 2
	case strings.Contains(first, "."):
		return 1
	}
	return 0
}

// ungrouped says what is wrong with the order of a file's imports, or "".
func ungrouped(fset *token.FileSet, f *ast.File) string {
	for i, spec := range f.Imports[min(1, len(f.Imports)):] {
		before := f.Imports[i]
		from, to := strings.Trim(before.Path.Value, `"`), strings.Trim(spec.Path.Value, `"`)
		begin := spec.Pos()
		if spec.Doc != nil {
			begin = spec.Doc.Pos()
		}
		apart := fset.Position(begin).Line > fset.Position(before.End()).Line+1
		switch {
		case group(from) > group(to):
			return fmt.Sprintf("%s stands behind %s", to, from)
		case group(from) == group(to) && apart:
			return fmt.Sprintf("an empty line parts %s from %s", to, from)
		case group(from) < group(to) && !apart:
			return fmt.Sprintf("no empty line parts %s from %s", to, from)
		}
	}
	return ""
}

func TestImportsStandInThreeGroups(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		seen++
		if problem := ungrouped(fset, f); problem != "" {
			t.Errorf("%s: %s (standard library, other modules, own packages, an empty line between them)", path, problem)
		}
		return nil
	})
	if err != nil || seen < 500 {
		t.Errorf("%d files were looked at: %v", seen, err)
	}
}
