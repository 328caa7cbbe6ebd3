// Package install holds how Pawl comes to a machine: built from a clone,
// installed from a module proxy, unpacked from an archive.
package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	module  = "github.com/pawlrun/pawl"
	version = "v0.9.8"
)

// long skips what compiles the command more than once.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
}

// sources are the files of the checkout, without modules of their own: those
// that git knows and those that it does not ignore.
func sources(t *testing.T) map[string][]byte {
	t.Helper()
	root := filepath.Join("..", "..")
	files := map[string][]byte{}
	for _, name := range strings.Split(output(t, root, nil, "git", "ls-files", "-z", "-co", "--exclude-standard"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case name == "" || errors.Is(err, fs.ErrNotExist): // deleted and not yet committed
		case err != nil:
			t.Fatal(err)
		default:
			files[name] = text
		}
	}
	return files
}

// clone is a copy of the checkout.
func clone(t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..")
	dir := t.TempDir()
	for name, text := range sources(t) {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text, info.Mode())
	}
	return dir
}

func write(t *testing.T, name string, text []byte, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, text, mode)); err != nil {
		t.Fatal(err)
	}
}

// output runs a command and gives what it prints, as if no make had started the tests.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MAKE") }), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(output(t, ".", nil, "go", "env", name))
}

// emptyCache is the environment of a machine that has no module yet. What this
// one has it gets without a network.
func emptyCache(t *testing.T, proxies ...string) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	proxies = append(proxies, "file://"+filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"), goEnv(t, "GOPROXY"))
	return dir, []string{
		"GOMODCACHE=" + dir, "GOFLAGS=-modcacherw -trimpath", "GOPROXY=" + strings.Join(proxies, ","), "GONOSUMDB=*", "GOSUMDB=off",
	}
}

func TestMakeRunDownloadsWhatTheBinaryNeedsAndNothingElse(t *testing.T) {
	long(t)
	cache, env := emptyCache(t)
	dir := clone(t)
	out := output(t, dir, env, "make", "run")
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "Building bin/pawl") {
		t.Errorf("make run begins with %q", first)
	}
	var got []string
	err := filepath.WalkDir(filepath.Join(cache, "cache", "download"), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".zip" {
			rel, _ := filepath.Rel(filepath.Join(cache, "cache", "download"), name)
			got = append(got, path.Dir(path.Dir(filepath.ToSlash(rel))))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(output(t, dir, nil, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/pawl"))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("modules (-of the binary +downloaded):\n%s", diff)
	}
}

func TestTheCommandInstallsFromAModuleProxy(t *testing.T) {
	long(t)
	proxy := t.TempDir()
	at := filepath.Join(proxy, module, "@v", version)
	files := sources(t)
	write(t, filepath.Join(filepath.Dir(at), "list"), []byte(version+"\n"), 0o600)
	write(t, at+".info", []byte(`{"Version":"`+version+`","Time":"2026-01-01T00:00:00Z"}`), 0o600)
	write(t, at+".mod", files["go.mod"], 0o600)
	write(t, at+".zip", moduleZip(t, files), 0o600)

	bin := t.TempDir()
	_, env := emptyCache(t, "file://"+proxy)
	output(t, bin, append(env, "GOBIN="+bin), "go", "install", module+"/cmd/pawl@"+version)
	if out := output(t, bin, nil, filepath.Join(bin, "pawl"), "version"); !strings.HasPrefix(out, "pawl "+version+" (go") {
		t.Errorf("pawl version says %q", out)
	}
	output(t, bin, nil, filepath.Join(bin, "pawl"), "init", "first")
	output(t, bin, nil, filepath.Join(bin, "pawl"), "run", "first/agent.yaml", "What is here?")
}

// moduleZip is what a proxy serves of a version: no module within it.
func moduleZip(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		if within(name, files) {
			continue
		}
		w, err := z.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// within reports whether a file belongs to a module within the checkout.
func within(name string, files map[string][]byte) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, inner := files[dir+"/go.mod"]; inner {
			return true
		}
	}
	return false
}

func TestAReleaseHasTheSameArchivesWhereverItIsBuilt(t *testing.T) {
	long(t)
	if runtime.GOOS != "linux" {
		t.Skip("make release needs GNU tar")
	}
	build := func() (dist, sums string) {
		dir := clone(t)
		output(t, dir, []string{"SOURCE_DATE_EPOCH=1767225600"}, "make", "release", "VERSION="+version)
		text, err := os.ReadFile(filepath.Join(dir, "dist", "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "dist"), string(text)
	}
	dist, sums := build()
	if _, again := build(); again != sums {
		t.Errorf("two builds differ:\n%s%s", sums, again)
	}
	var names []string
	for line := range strings.Lines(sums) {
		fields := strings.Fields(line)
		text, err := os.ReadFile(filepath.Join(dist, fields[1]))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != fields[0] {
			t.Errorf("the checksum of %s is wrong", fields[1])
		}
		names = append(names, fields[1])
	}
	prefix := "pawl_" + version + "_"
	want := []string{prefix + "linux_amd64.tar.gz", prefix + "linux_arm64.tar.gz", prefix + "darwin_amd64.tar.gz", prefix + "darwin_arm64.tar.gz"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
	bin := unpacked(t, filepath.Join(dist, prefix+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"))
	if out := output(t, dist, nil, bin, "version"); !strings.HasPrefix(out, "pawl "+version+" (go") {
		t.Errorf("pawl version says %q", out)
	}
}

// unpacked unpacks an archive and gives the path of its program.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir, found := t.TempDir(), []string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, path.Base(h.Name)), text, h.FileInfo().Mode())
		found = append(found, path.Base(h.Name))
	}
	if diff := cmp.Diff([]string{"LICENSE", "README.md", "pawl"}, found); diff != "" {
		t.Errorf("the archive's files (-want +got):\n%s", diff)
	}
	return filepath.Join(dir, "pawl")
}

// compiler is a go command that compiles 120 packages, or fails after 60 with a message.
const compiler = `#!/bin/sh
case $1 in
list) seq 120; exit ;;
build) ;;
*) exit 9 ;;
esac
for n in $(seq "$COUNT"); do echo "example.com/p$n"; done >&2
test "$COUNT" = 120 || { echo "# example.com/broken" >&2; echo "broken.go:1:1: wrong word" >&2; exit 1; }
`

func TestMakeShowsHowFarTheCompilerIs(t *testing.T) {
	dir := t.TempDir()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "Makefile"), makefile, 0o600)
	write(t, filepath.Join(dir, "go"), []byte(compiler), 0o700)
	for _, c := range []struct {
		count, want string
		fails       bool
	}{
		{"120", "compiled 50 of at most 120 packages\ncompiled 100 of at most 120 packages\ncompiled 120 packages\n", false},
		{"60", "compiled 50 of at most 120 packages\n# example.com/broken\nbroken.go:1:1: wrong word\n", true},
	} {
		made := exec.Command("make", "build", "GO="+filepath.Join(dir, "go"))
		made.Dir, made.Env = dir, append(os.Environ(), "COUNT="+c.count)
		out, err := made.CombinedOutput()
		lines := strings.Join(strings.Fields(strings.ReplaceAll(string(out), "\n", " \n ")), " ")
		if want := strings.Join(strings.Fields(c.want), " "); !strings.Contains(lines, want) || (err != nil) != c.fails {
			t.Errorf("make says %v\n%s", err, out)
		}
	}
}

func TestTheReadmeIsPlainAndWhatItShowsIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if word := regexp.MustCompile(`(?i)aldo|rondo`).Find(text); word != nil {
		t.Errorf("the README speaks of %s", word)
	}
	pictures := int64(0)
	for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllSubmatch(text, -1) {
		info, err := os.Stat(filepath.Join(root, string(link[1])))
		if err != nil {
			t.Errorf("the README shows what is not there: %v", err)
		} else if strings.HasPrefix(string(link[1]), "docs/pictures/") {
			pictures += info.Size()
		}
	}
	if pictures == 0 || pictures > 150_000 {
		t.Errorf("the pictures have %d bytes", pictures)
	}
}
