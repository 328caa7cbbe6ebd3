package web_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vendored are the packages of npm that are copied here, in these versions.
func vendored(t *testing.T) (packages []string) {
	t.Helper()
	for _, name := range []string{"preact", "@preact/signals", "@preact/signals-core"} {
		text, err := os.ReadFile(filepath.Join("vendor", name, "package.json"))
		if err != nil {
			t.Fatal(err)
		}
		var about struct{ Version string }
		if err := json.Unmarshal(text, &about); err != nil || about.Version == "" {
			t.Fatal(name, err)
		}
		packages = append(packages, name+"@"+about.Version)
	}
	return packages
}

// The bundler takes types out without reading them, and what is copied could have been
// changed: both are compared with what npm has.
func TestTheSourcesHaveTheirTypesAndTheirCopiesAreWhatNpmHas(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS("src")); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", append([]string{"install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "typescript@7.0.2"}, vendored(t)...)...)
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("TypeScript cannot be installed: %v\n%s", err, out)
	}
	check := exec.CommandContext(t.Context(), "node", "node_modules/typescript/bin/tsc", "-p", "src")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	compared := 0
	err := fs.WalkDir(os.DirFS("vendor"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		ours, err := os.ReadFile(filepath.Join("vendor", path))
		if err != nil {
			return err
		}
		theirs, err := os.ReadFile(filepath.Join(dir, "node_modules", path))
		if err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s is not what npm has: %v", path, err)
		}
		compared++
		return nil
	})
	if err != nil || compared < 11 {
		t.Errorf("%d files were compared: %v", compared, err)
	}
}

// Nothing in the page names another server.
func TestTheBundleHoldsNoAddress(t *testing.T) {
	files, err := filepath.Glob("dist/*-*.*s")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml", "http://www.w3.org/1998/Math/MathML"} { // names that are never used
			text = bytes.ReplaceAll(text, []byte(known), nil)
		}
		if i := bytes.Index(text, []byte("://")); i >= 0 {
			t.Errorf("%s: …%s…", name, strings.TrimSpace(string(text[max(0, i-20):min(len(text), i+60)])))
		}
	}
}
