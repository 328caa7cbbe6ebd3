package published_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/host/published"
	"github.com/pawlrun/pawl/journal/memory"
)

func TestEachPublicationReachesEachMirror(t *testing.T) {
	store := memory.New(nil)
	early := &published.Mirror{Store: store, Dir: t.TempDir(), TokensFile: filepath.Join(t.TempDir(), "a", "tokens.yaml")}
	var all sync.WaitGroup
	for _, text := range []string{"one", "two", "three"} {
		all.Go(func() {
			s := published.Set{Files: map[string]published.File{"sub/" + text: {Text: []byte(text), Runs: true}}}
			if _, err := published.Publish(t.Context(), store, s); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := published.Publish(t.Context(), store, published.Set{Tokens: "[]\n"}); err != nil {
		t.Fatal(err)
	}
	late := &published.Mirror{Store: store, Dir: t.TempDir(), TokensFile: filepath.Join(t.TempDir(), "tokens.yaml")}
	for _, m := range []*published.Mirror{early, late} {
		for _, want := range []bool{true, false} {
			if changed, err := m.Look(t.Context()); err != nil || changed != want {
				t.Errorf("changed %t, want %t: %v", changed, want, err)
			}
		}
		if len(m.Sets()) != 3 || !m.HasTokens() {
			t.Errorf("the sets %v, tokens %t", m.Sets(), m.HasTokens())
		}
	}
	for i, dir := range late.Sets() {
		there, here := late.Find(filepath.Join(early.Sets()[i], "sub", "one"))
		if there != early.Sets()[i] || here != dir {
			t.Errorf("set %d is at %s and here at %s, want %s", i, there, here, dir)
		}
		if names, err := filepath.Glob(filepath.Join(dir, "sub", "*")); err != nil || len(names) != 1 {
			t.Errorf("the set has %v, %v", names, err)
		}
	}
	if there, here := late.Find("/x/y"); there != "" || here != "" {
		t.Errorf("a path in no set is in %q, here %q", there, here)
	}
}

func TestDirectoryIsReadWithoutHiddenFilesAndLinks(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{".git", "sub"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.yaml", ".env", ".git/config", "sub/b.sh"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	files, err := published.Read(dir)
	if err != nil || len(files) != 2 || string(files["sub/b.sh"].Text) != "sub/b.sh" || files["a.yaml"].Runs {
		t.Errorf("%v, %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Repeat("x", 17<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := published.Read(dir); !errors.Is(err, published.ErrTooLarge) {
		t.Errorf("17 MiB are read: %v", err)
	}
}
