package tokens_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
)

func read(t *testing.T, path string) []tokens.Entry {
	t.Helper()
	all, err := tokens.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestATokenIsReadNowhereButWhereItWasMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	tomorrow := now.Add(24 * time.Hour)
	ann, err := tokens.Create(path, tokens.Entry{Name: "ann", Role: access.Editor, Expires: &tomorrow})
	if err != nil {
		t.Fatal(err)
	}
	bob, err := tokens.Create(path, tokens.Entry{Name: "bob", Role: access.Viewer})
	if err != nil || bob == ann {
		t.Fatal(err)
	}
	if _, err := tokens.Create(path, tokens.Entry{Name: "ann", Role: access.Admin}); !errors.Is(err, tokens.ErrExists) {
		t.Errorf("a second ann: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), strings.TrimPrefix(ann, "pawl_")) {
		t.Errorf("the file holds the token: %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for others too: %v, %v", info.Mode(), err)
	}
	want := event.Principal{Name: "ann", Role: "editor", Proof: event.ProofToken}
	for token, when := range map[string]time.Time{ann: now, " " + ann: tomorrow.Add(-1)} {
		if e, ok := tokens.Find(read(t, path), token, when); !ok || e.Principal() != want {
			t.Errorf("%q: %+v, %t", token, e, ok)
		}
	}
	for token, when := range map[string]time.Time{ann: tomorrow, ann[:len(ann)-1]: now, ann + "x": now, "": now, read(t, path)[0].Hash: now} {
		if e, ok := tokens.Find(read(t, path), token, when); ok {
			t.Errorf("%q at %s is %+v", token, when, e)
		}
	}
	if err := tokens.Revoke(path, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Find(read(t, path), ann, now); ok {
		t.Error("a revoked token counts")
	}
	if err := tokens.Revoke(path, "ann"); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if _, ok := tokens.Find(read(t, path), bob, now); !ok {
		t.Error("another's token went as well")
	}
}

func TestATokenThatAPersonWroteIsHashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	const secret = "correct horse battery staple"
	if err := os.WriteFile(path, []byte("- {name: ann, role: admin, token: "+secret+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if plain, err := tokens.Seal(path); err != nil || len(plain) != want {
			t.Errorf("%v, %v", plain, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "horse") {
		t.Errorf("%s, %v", text, err)
	}
	if e, ok := tokens.Find(read(t, path), secret, time.Now()); !ok || e.Name != "ann" {
		t.Errorf("%+v, %t", e, ok)
	}
}

func TestNoTokenIsLostWhereSeveralAreMadeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	var all sync.WaitGroup
	for _, name := range strings.Split("abcdefghij", "") {
		all.Go(func() {
			if _, err := tokens.Create(path, tokens.Entry{Name: name, Role: access.Viewer}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(read(t, path)); n != 10 {
		t.Errorf("%d of 10 are there", n)
	}
}

var wrong = map[string]string{
	"no list":      "ann: x",
	"another key":  "- {name: ann, role: viewer, token: 01234567890123456789, scope: all}",
	"is none of":   "- {name: ann, role: owner, token: 01234567890123456789}",
	"the name":     "- {role: viewer, token: 01234567890123456789}",
	"is there twi": "- {name: ann, role: viewer, token: 01234567890123456789}\n- {name: ann, role: admin, token: 01234567890123456780}",
	"needs a hash": "- {name: ann, role: viewer}",
	"64 hex":       "- {name: ann, role: viewer, hash: 'sha256:12'}",
	"less than 20": "- {name: ann, role: viewer, token: short}",
}

func TestTokenFileWithUnknownKeysIsRefused(t *testing.T) {
	for says, text := range wrong {
		if _, err := tokens.Parse([]byte(text)); err == nil || says != "another key" && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzParse: what is read can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add("- {name: ann, role: viewer, hash: 'sha256:" + strings.Repeat("0", 64) + "', expires: 2026-11-23T00:00:00Z}")
	f.Add("[]")
	f.Add("")
	for _, text := range wrong {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := tokens.Parse([]byte(text))
		if err != nil {
			return
		}
		for _, e := range all {
			if e.Name == "" || !e.Role.Known() || e.Role == access.Anyone {
				t.Errorf("%+v", e)
			}
		}
	})
}
