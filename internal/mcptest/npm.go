package mcptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Packages returns a directory with Node 22 and packages of npm, each with its version,
// such as "name@1.2.3". They are installed once into the user's cache; the test is
// skipped where they cannot be.
func Packages(t testing.TB, packages ...string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("there is no directory for caches: ", err)
	}
	name := strings.NewReplacer("/", "-", "@", "-").Replace(strings.TrimPrefix(strings.Join(packages, "-"), "@"))
	dir = filepath.Join(cache, "pawl-tests", name)
	ready := filepath.Join(dir, "installed")
	if _, err := os.Stat(ready); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--silent", "--no-audit", "--no-fund", "node@22"}, packages...)...)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("%v cannot be installed: %v\n%s", packages, err, out)
	}
	if out, err := exec.CommandContext(t.Context(), Node(dir), "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "v22.") {
		t.Skipf("Node 22 cannot be installed: %v %s", err, out)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Node is the program of Node 22 in a directory of [Packages].
func Node(dir string) string { return filepath.Join(dir, "node_modules", "node", "bin", "node") }
