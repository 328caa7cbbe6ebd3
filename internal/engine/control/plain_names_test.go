package control_test

import (
	"flag"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/golden"
)

var update = flag.Bool("update", false, "write the names of the packages anew")

// A package that begins its errors with its name must be in the list, or people see the
// names of Pawl's packages in errors.
func TestEveryPackageThatNamesItselfInItsErrorsIsLeftOutOfThem(t *testing.T) {
	stay := []string{"anthropic", "gemini", "openai", "openaichat", "scripted", // providers
		"event"} // names what was damaged for readers who do not know the package
	names := slices.DeleteFunc(prefixes(t, filepath.Join("..", "..", "..")), func(name string) bool { return slices.Contains(stay, name) })
	slices.Sort(names)
	golden.File(t, "packages.txt", strings.Join(slices.Compact(names), "\n")+"\n", *update)
}

// holdsProduct reports whether a directory may contain packages whose errors people
// read.
func holdsProduct(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == "." || rel == "internal" {
		return err == nil
	}
	floor, below := strings.CutPrefix(filepath.ToSlash(rel), "internal/")
	if below && !strings.Contains(floor, "/") {
		return slices.Contains([]string{"engine", "files", "host", "machine", "rules", "server", "signals", "web"}, floor)
	}
	base := filepath.Base(path)
	return base != "internal" && base != "cmd" && base != "testdata" && !strings.HasPrefix(base, ".")
}

// prefixes returns the names of the packages below a directory whose errors begin with
// their name, once for each error.
func prefixes(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && !holdsProduct(root, path):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if !ok || text.Kind != gotoken.STRING {
				return true
			}
			if said, err := strconv.Unquote(text.Value); err == nil && strings.HasPrefix(said, file.Name.Name+": ") {
				names = append(names, file.Name.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
