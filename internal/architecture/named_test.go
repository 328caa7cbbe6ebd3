package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What stands for many is reached by its interface: the machines of runs by the
// table of versions, and the runs of a driver by [drive.Run]. So another machine,
// and another driver, are no change to those who use them.
func TestWhoUsesAMachineOrARunNamesNoParticularOne(t *testing.T) {
	for _, of := range []struct {
		pkg   string
		names []string
		// home are the packages that may name it.
		home []string
	}{
		{"internal/machine/agent", []string{"Machine", "New"}, []string{"internal/machine/agent", "internal/machine/versions"}},
		{"internal/engine", []string{"Run"}, []string{"internal/engine"}},
	} {
		out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}}", module+"/...").Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		importers := 0
		for line := range strings.Lines(string(out)) {
			importPath, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if pkg, _ := local(importPath); slices.Contains(of.home, pkg) {
				continue
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				if !strings.HasSuffix(name, "_test.go") && naming(t, name, of.pkg, of.names) {
					importers++
				}
			}
		}
		if importers == 0 {
			t.Errorf("nothing imports %s", of.pkg)
		}
	}
}

// naming reports whether a file imports a package, and fails where it names one of
// what is the package's own business.
func naming(t *testing.T, file, pkg string, names []string) (imports bool) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	as := ""
	for _, i := range f.Imports {
		if i.Path.Value == `"`+module+"/"+pkg+`"` {
			if as = path.Base(pkg); i.Name != nil {
				as = i.Name.Name
			}
		}
	}
	if as == "" {
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == as && slices.Contains(names, sel.Sel.Name) {
				t.Errorf("%s: %s.%s is named outside %s", fset.Position(sel.Pos()), as, sel.Sel.Name, pkg)
			}
		}
		return true
	})
	return true
}
