package architecture

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// surface is what a program may build on. A change of it is seen in the diff of
// testdata/api.txt, and is made on purpose or not at all.
var surface = []string{"", "llm", "event", "tool", "hook", "journal", "models", "budget", "stop"}

func TestTheExportedSurfaceIsTheOneThatIsPinned(t *testing.T) {
	var b strings.Builder
	for _, pkg := range surface {
		describe(t, &b, strings.TrimSuffix(module+"/"+pkg, "/"))
	}
	const golden = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
		t.Errorf("the exported surface has changed; if that is meant, run this test with -update (-pinned +now):\n%s", diff)
	}
}

// describe writes the exported identifiers of a package, one a line.
func describe(t *testing.T, b *strings.Builder, path string) {
	t.Helper()
	pkg := check(t, path, nil, nil)
	fmt.Fprintf(b, "package %s\n", path)
	qualify := func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		return other.Name()
	}
	var lines []string
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		if obj := scope.Lookup(name); obj.Exported() {
			lines = append(lines, lineOf(obj, qualify)...)
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(b, "\t%s\n\n", strings.Join(lines, "\n\t"))
}

func lineOf(obj types.Object, qualify types.Qualifier) []string {
	named, ok := obj.Type().(*types.Named)
	if _, isType := obj.(*types.TypeName); !isType || !ok || obj.(*types.TypeName).IsAlias() {
		line := types.ObjectString(obj, qualify)
		if c, ok := obj.(*types.Const); ok {
			line += " = " + c.Val().ExactString()
		}
		return []string{line}
	}
	name := obj.Name()
	lines := []string{"type " + name + " " + kindOf(named.Underlying(), qualify)}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				tag := ""
				if u.Tag(i) != "" {
					tag = " `" + u.Tag(i) + "`"
				}
				lines = append(lines, fmt.Sprintf("type %s, field %s %s%s", name, f.Name(), types.TypeString(f.Type(), qualify), tag))
			}
		}
	case *types.Interface:
		for i := range u.NumMethods() {
			m := u.Method(i)
			lines = append(lines, fmt.Sprintf("type %s, method %s%s", name, m.Name(), signature(m, qualify)))
		}
	}
	for i := range named.NumMethods() {
		if m := named.Method(i); m.Exported() {
			recv := types.TypeString(m.Signature().Recv().Type(), qualify)
			lines = append(lines, fmt.Sprintf("method (%s) %s%s", recv, m.Name(), signature(m, qualify)))
		}
	}
	return lines
}

func kindOf(t types.Type, qualify types.Qualifier) string {
	switch t.(type) {
	case *types.Struct:
		return "struct"
	case *types.Interface:
		return "interface"
	}
	return types.TypeString(t, qualify)
}

func signature(f *types.Func, qualify types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(f.Type(), qualify), "func")
}

// check type-checks a package from its source, with its imports from the
// compiler's export data.
// check type-checks a package; info and visit, where given, get what it found
// and its files.
func check(t *testing.T, path string, info *types.Info, visit func(*token.FileSet, *ast.File)) *types.Package {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", path).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	var dir string
	var names []string
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath == path {
			dir, names = p.Dir, p.GoFiles
		}
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) {
		return os.Open(exports[p])
	})}
	pkg, err := conf.Check(path, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	if visit != nil {
		for _, f := range files {
			visit(fset, f)
		}
	}
	return pkg
}
