package architecture

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that imports pawl compiles the standard library, the two JSON
// Schema libraries, and what those need; everything heavy is reached only by
// who imports it.
func TestImportingPawlCompilesOnlyWhatItUses(t *testing.T) {
	allowed := []string{
		module,
		"github.com/google/jsonschema-go",
		"github.com/santhosh-tekuri/jsonschema",
		"golang.org/x/text",
	}
	banned := []string{
		module + "/internal/files/expr", "cel.dev", module + "/journal/sqlite", module + "/internal/files/spec", module + "/internal/files/launch", module + "/llm/scripted",
		module + "/cmd", module + "/internal/cli", module + "/models", module + "/tool/fs", module + "/tool/shell", module + "/tool/mcp", "charm.land", "github.com/charmbracelet", "github.com/coder/acp-go-sdk",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if !within(pkg, allowed) {
			t.Errorf("importing pawl compiles %s", pkg)
		}
		if within(pkg, banned) {
			t.Errorf("importing pawl compiles %s, which only its own users should", pkg)
		}
	}
}

// TestImportingPawlBringsNoServer keeps listening sockets out of programs that
// only embed a loop. net/http itself may come with the schema libraries.
func TestImportingPawlBringsNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		switch pkg {
		case "database/sql", "net/http/httputil", "net/http/pprof", "net/rpc", "os/exec", "plugin":
			t.Errorf("importing pawl compiles %s", pkg)
		}
	}
}

func within(pkg string, roots []string) bool {
	for _, root := range roots {
		if pkg == root || strings.HasPrefix(pkg, root+"/") {
			return true
		}
	}
	return false
}
