// Package tokens stores the tokens that a server accepts: those of a file, and the one
// of a server that was started without a file.
//
// The file is YAML, a list of {name, role, hash, expires?, tenant?, budget?, max_running?, weight?}; it contains a plain token
// only until a server first reads it. A generated token has 256 random bits, so one
// round of SHA-256 protects it. A token that a person chose must be long.
package tokens

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/rules/access"
)

// Entry is one token of a file.
type Entry struct {
	Name string      `yaml:"name" json:"name"`
	Role access.Role `yaml:"role" json:"role"`
	// Hash is "sha256:" and the hex digest of the token.
	Hash string `yaml:"hash,omitempty" json:"-"`
	// Expires is when the token expires, nil for never.
	Expires *time.Time `yaml:"expires,omitempty" json:"expires,omitempty"`
	// Tenant groups tokens, which then share one budget; empty means the token alone.
	Tenant string `yaml:"tenant,omitempty" json:"tenant,omitempty"`
	// Budget bounds what the runs of the tenant spend, nil for no bound.
	Budget *Budget `yaml:"budget,omitempty" json:"budget,omitempty"`
	// MaxRunning is how many runs of the tenant are driven at once, 0 for any number, and
	// Weight its share of the workers beside other tenants, 0 for 1. They apply to runs
	// that Temporal places.
	MaxRunning int     `yaml:"max_running,omitempty" json:"maxRunning,omitempty"`
	Weight     float64 `yaml:"weight,omitempty" json:"weight,omitempty"`
	// Token is a plain token that a person wrote in place of a hash.
	Token string `yaml:"token,omitempty" json:"-"`
}

// Expired reports whether the token has expired.
func (e Entry) Expired(now time.Time) bool { return e.Expires != nil && !now.Before(*e.Expires) }

// Principal returns the principal of the token.
func (e Entry) Principal() event.Principal {
	return event.Principal{Name: e.Name, Role: string(e.Role), Proof: event.ProofToken}
}

// ErrExists and ErrNotFound are returned for a name that has a token, or has none.
var (
	ErrExists   = errors.New("tokens: the name has a token already")
	ErrNotFound = errors.New("tokens: there is no token of that name")
)

// shortest is the minimum length of a token that a person chose.
const shortest = 20

// isName reports whether a name is valid for a token: letters and digits and, after the
// first of them, also "._@-", up to 64 characters.
func isName(name string) bool {
	n := 0
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && (n == 0 || !strings.ContainsRune("._@-", r)) {
			return false
		}
		n++
	}
	return n > 0 && n <= 64
}

// isHash reports whether a text has the form of a stored hash.
func isHash(text string) bool {
	digits, ours := strings.CutPrefix(text, "sha256:")
	_, err := hex.DecodeString(digits)
	return ours && err == nil && len(digits) == 64 && digits == strings.ToLower(digits)
}

// Parse parses the content of a file. Each entry has a unique name, a role, and a hash
// or a token.
func Parse(text []byte) ([]Entry, error) {
	var all []Entry
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("tokens: no list of {name, role, hash, expires?, tenant?, budget?, max_running?, weight?}: %w", err)
	}
	seen, budgets, places := map[string]bool{}, map[string]*Budget{}, map[string]Placing{}
	for i, e := range all {
		at := fmt.Sprintf("tokens: entry %d", i+1)
		switch {
		case !isName(e.Name):
			return nil, fmt.Errorf("%s: the name %q is not 1 to 64 letters, digits and . _ @ -", at, e.Name)
		case seen[e.Name]:
			return nil, fmt.Errorf("%s: the name %q is there twice", at, e.Name)
		case !slices.Contains(access.Roles(), e.Role):
			return nil, fmt.Errorf("%s: the role %q of %s is none of viewer, editor, admin", at, e.Role, e.Name)
		case (e.Hash == "") == (e.Token == ""):
			return nil, fmt.Errorf("%s: %s needs a hash or a token, and not both", at, e.Name)
		case e.Hash != "" && !isHash(e.Hash):
			return nil, fmt.Errorf("%s: the hash of %s is not sha256: and 64 hex digits", at, e.Name)
		case e.Token != "" && len(e.Token) < shortest:
			return nil, fmt.Errorf("%s: the token of %s has less than %d characters; let 'pawl token create' make one", at, e.Name, shortest)
		}
		seen[e.Name] = true
		if e.Tenant != "" && !isName(e.Tenant) {
			return nil, fmt.Errorf("%s: the tenant %q of %s is not 1 to 64 letters, digits and . _ @ -", at, e.Tenant, e.Name)
		}
		if e.MaxRunning < 0 || e.Weight != 0 && !(e.Weight >= 0.001 && e.Weight <= 1000) {
			return nil, fmt.Errorf("%s: max_running of %s is not 0 or more, or its weight not 0.001 to 1000", at, e.Name)
		}
		if other, is := places[e.tenant()]; is && other != e.placing() {
			return nil, fmt.Errorf("%s: the tenant %s has another max_running or weight in an entry before; give its tokens the same", at, e.tenant())
		}
		places[e.tenant()] = e.placing()
		if b := e.Spending(); b != nil {
			if err := b.check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", at, e.Name, err)
			}
			if other := budgets[b.Tenant]; other != nil && *other != *b {
				return nil, fmt.Errorf("%s: the tenant %s has another budget in an entry before; give its tokens the same", at, b.Tenant)
			}
			budgets[b.Tenant] = b
		}
	}
	return all, nil
}

// Read reads a file. A missing file has no tokens.
func Read(path string) ([]Entry, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	all, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return all, nil
}

// Seal replaces the plain tokens in a file by their hashes, and returns the names of
// their entries.
func Seal(path string) (plain []string, err error) {
	return plain, change(path, func(all []Entry) ([]Entry, error) {
		for i, e := range all {
			if e.Token != "" {
				all[i].Hash, all[i].Token = hashOf(e.Token), ""
				plain = append(plain, e.Name)
			}
		}
		return all, nil
	})
}

// New returns a new token.
func New() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return "pawl_" + base64.RawURLEncoding.EncodeToString(secret)
}

// EntryOf returns the entry of a token.
func EntryOf(name string, role access.Role, token string) Entry {
	return Entry{Name: name, Role: role, Hash: hashOf(token)}
}

// Create creates a token for a name, and returns it. It is not stored anywhere in plain
// form.
func Create(path string, e Entry) (token string, err error) {
	token = New()
	e.Hash = hashOf(token)
	return token, change(path, func(all []Entry) ([]Entry, error) {
		if slices.ContainsFunc(all, func(other Entry) bool { return other.Name == e.Name }) {
			return nil, fmt.Errorf("%w: %s", ErrExists, e.Name)
		}
		return append(all, e), nil
	})
}

// Revoke removes the token of a name from a file.
func Revoke(path, name string) error {
	return change(path, func(all []Entry) ([]Entry, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Name == name })
		if len(left) == len(all) {
			return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		return left, nil
	})
}

// change rewrites a file atomically, under a lock.
func change(path string, how func([]Entry) ([]Entry, error)) error {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("tokens: lock %s: %w", path, err)
	}
	before, err := Read(path)
	if err != nil {
		return err
	}
	after, err := how(slices.Clone(before))
	if err != nil || slices.Equal(before, after) {
		return err
	}
	text, err := yaml.Marshal(after)
	if err == nil {
		_, err = Parse(text)
	}
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".tokens-*")
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Sync(), draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("tokens: write %s: %w", path, errors.Join(err, os.Remove(draft.Name())))
	}
	return nil
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Find returns the entry of a token. Its time depends only on the length of the token,
// not on whether there is an entry.
func Find(all []Entry, token string, now time.Time) (found Entry, ok bool) {
	hash := []byte(hashOf(strings.TrimSpace(token)))
	for _, e := range all {
		if subtle.ConstantTimeCompare([]byte(e.Hash), hash) == 1 && !e.Expired(now) {
			found, ok = e, true
		}
	}
	return found, ok
}
