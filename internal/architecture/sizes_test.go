package architecture

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Most fields of a struct, most lines of a function and most lines of the mean function
// in the packages that a reader follows a cycle through.
const (
	mostFields    = 15
	mostLines     = 80
	mostMeanLines = 13
)

// small are those packages: the root, the engine, and the machines that say what a run
// does next.
var small = []string{
	".", "internal/engine", "internal/engine/perform", "internal/machine", "internal/machine/agent", "internal/machine/flow", "internal/machine/goal", "internal/machine/process", "internal/machine/refine", "internal/machine/tree", "internal/machine/versions",
}

// wide are the types with more fields, by package and name, and why.
var wide = map[string]string{
	"..Loop":                        "a loop over items and a loop until a condition are one type, as in a file",
	"internal/machine/agent.Config": "the configuration of an agent as run.started holds it: one field for each setting",
}

func TestTypesAndFunctionsStaySmallEnoughToRead(t *testing.T) {
	for _, pkg := range small {
		functions, lines := 0, 0
		for _, f := range filesOf(t, pkg) {
			ast.Inspect(f.tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					s, ok := n.Type.(*ast.StructType)
					if ok && fields(s) > mostFields && wide[pkg+"."+n.Name.Name] == "" {
						t.Errorf("%s: %s has %d fields, more than %d: give what belongs together a type of its own", f.at(n), n.Name.Name, fields(s), mostFields)
					}
				case *ast.FuncDecl:
					length := f.set.Position(n.End()).Line - f.set.Position(n.Pos()).Line + 1
					functions, lines = functions+1, lines+length
					if length > mostLines {
						t.Errorf("%s: %s has %d lines, more than %d", f.at(n), n.Name.Name, length, mostLines)
					}
				}
				return true
			})
		}
		if lines == 0 || lines >= mostMeanLines*functions {
			t.Errorf("%s: %d functions have %d lines, %d or more each in the mean", pkg, functions, lines, mostMeanLines)
		}
	}
}

// parsedFile is a file of a package that is no test.
type parsedFile struct {
	set  *token.FileSet
	tree *ast.File
}

func (s parsedFile) at(n ast.Node) token.Position { return s.set.Position(n.Pos()) }

func filesOf(t *testing.T, pkg string) []parsedFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []parsedFile
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsedFile{set: set, tree: tree})
	}
	return all
}

// fields counts an embedded one, too.
func fields(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// mostFiles bounds the files of a package, tests left out: one idea a file, and few ideas.
var mostFiles = map[string]int{"internal/engine": 30, "internal/machine/agent": 18, "internal/files/launch": 15}

func TestAPackageHasFewFiles(t *testing.T) {
	for pkg, most := range mostFiles {
		if files := filesOf(t, pkg); len(files) == 0 || len(files) > most {
			t.Errorf("%s has %d files, more than %d", pkg, len(files), most)
		}
	}
}

// mostLinesOfAPackage bounds the Go lines of a package of the core, tests left out: what is
// more than that is two things.
const mostLinesOfAPackage = 6_000

// core begins the paths of those packages; the root is one, too.
var core = []string{"internal/engine", "internal/machine", "internal/files", "llm", "tool", "journal"}

// large are the packages with more lines, and their bounds.
var large = map[string]int{}

func TestAPackageOfTheCoreHasFewLines(t *testing.T) {
	for _, p := range list(t) {
		pkg, _ := local(p.ImportPath)
		if pkg != "" && !within(pkg, core) {
			continue
		}
		lines, most := 0, cmp.Or(large[pkg], mostLinesOfAPackage)
		for _, f := range filesOf(t, cmp.Or(pkg, ".")) {
			lines += f.set.File(f.tree.Pos()).LineCount()
		}
		if lines == 0 || lines > most {
			t.Errorf("%s has %d lines, more than %d", cmp.Or(pkg, "the root"), lines, most)
		}
		if large[pkg] > 0 && lines <= mostLinesOfAPackage {
			t.Errorf("%s has %d lines and needs no exception", pkg, lines)
		}
	}
}
