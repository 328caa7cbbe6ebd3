// Package published keeps in a journal what its servers share besides runs: the files
// that can be run by name, and the tokens. Each server mirrors them into a directory of
// its own.
package published

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/journal"
)

const (
	// counter counts the publications of a journal. Number n is the note with the key
	// counter/n.
	counter = "published"
	// mostBytes and mostFiles bound a publication.
	mostBytes = 16 << 20
	mostFiles = 2000
)

var (
	// ErrTooLarge is wrapped by the error for a directory that exceeds the bounds.
	ErrTooLarge = errors.New("published: too large")
	// ErrCannot is returned for a journal that keeps no counters.
	ErrCannot = errors.New("published: the journal keeps no publications")
)

// Set is one publication: files, or tokens, or both.
type Set struct {
	// Files holds the files by their paths, with slashes; nil publishes no files.
	Files map[string]File `json:"files,omitempty"`
	// Tokens is a file of tokens with hashes alone; empty publishes no tokens.
	Tokens string `json:"tokens,omitempty"`
}

// File is the content of a file.
type File struct {
	Text []byte `json:"text"`
	// Runs marks a file that can be executed.
	Runs bool `json:"runs,omitempty"`
}

// Digest returns the digest that names the files of a set.
func (s Set) Digest() (string, error) {
	text, err := json.Marshal(s.Files) // sorts the paths
	if err != nil {
		return "", fmt.Errorf("published: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Read reads the files of a directory, without hidden ones.
func Read(dir string) (map[string]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("published: %w", err)
	}
	defer root.Close()
	files, size := map[string]File{}, 0
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += int(min(info.Size(), mostBytes+1)); size > mostBytes || len(files) == mostFiles {
			return fmt.Errorf("%w: %s has more than %d MiB or %d files; name the directory of the agent files alone", ErrTooLarge, dir, mostBytes>>20, mostFiles)
		}
		text, err := root.ReadFile(path)
		files[path] = File{text, info.Mode()&0o100 != 0}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("published: %w", err)
	}
	return files, nil
}

// ReadTokens reads a file of tokens, after the plain ones in it are hashed.
func ReadTokens(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("published: %w", err)
	}
	if _, err := tokens.Seal(path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = tokens.Parse(text)
	}
	if err != nil {
		return "", fmt.Errorf("published: %w", err)
	}
	return cmp.Or(string(text), "[]\n"), nil
}

// Publish adds a set to a journal, and returns its number.
func Publish(ctx context.Context, store journal.Store, s Set) (int64, error) {
	counts, may := store.(journal.KeepsCounters)
	if !may {
		return 0, ErrCannot
	}
	body, err := json.Marshal(s)
	if err != nil {
		return 0, fmt.Errorf("published: %w", err)
	}
	before, _, err := counts.Count(ctx, counter, 0, math.MaxInt64)
	if err != nil {
		return 0, fmt.Errorf("published: %w", err)
	}
	n := before + 1
	for ; ; n++ {
		_, fresh, err := store.Note(ctx, journal.Note{Key: key(n), At: time.Now(), Body: body})
		if err != nil {
			return 0, fmt.Errorf("published: %w", err)
		}
		if fresh {
			break
		}
	}
	// Another publication may have been counted meanwhile.
	for sum := before; sum < n; {
		if sum, _, err = counts.Count(ctx, counter, n-sum, n); err != nil {
			return 0, fmt.Errorf("published: %w", err)
		}
	}
	return n, nil
}

func key(n int64) string { return counter + "/" + strconv.FormatInt(n, 10) }

// Mirror is a copy of the publications of a journal on this machine. It is for one
// goroutine at a time.
type Mirror struct {
	Store journal.Store
	// Dir is the directory of the copies of files: one for each set, by its digest.
	Dir string
	// TokensFile is the copy of the newest tokens.
	TokensFile string
	seen       int64
	sets       []string
	tokens     bool
}

// Sets returns the directories of the published files, the newest first.
func (m *Mirror) Sets() []string { return m.sets }

// HasTokens reports whether tokens are published.
func (m *Mirror) HasTokens() bool { return m.tokens }

// Look copies what was published since the last call, and reports whether anything was.
func (m *Mirror) Look(ctx context.Context) (changed bool, err error) {
	counts, may := m.Store.(journal.KeepsCounters)
	if !may {
		return false, nil
	}
	last, _, err := counts.Count(ctx, counter, 0, math.MaxInt64)
	if err != nil {
		return false, fmt.Errorf("published: %w", err)
	}
	for ; m.seen < last; m.seen++ {
		if err := m.copy(ctx, m.seen+1); err != nil {
			return changed, fmt.Errorf("published: number %d: %w", m.seen+1, err)
		}
		changed = true
	}
	return changed, nil
}

func (m *Mirror) copy(ctx context.Context, n int64) error {
	note, _, err := m.Store.Note(ctx, journal.Note{Key: key(n), At: time.Now(), Body: []byte(`{}`)})
	if err != nil {
		return err
	}
	var s Set
	if err := json.Unmarshal(note.Body, &s); err != nil {
		return err
	}
	if s.Tokens != "" {
		m.tokens = true
		if err := replace(m.TokensFile, []byte(s.Tokens), 0o600); err != nil {
			return err
		}
	}
	if s.Files == nil {
		return nil
	}
	digest, err := s.Digest()
	if err != nil {
		return err
	}
	dir := filepath.Join(m.Dir, digest)
	m.sets = append([]string{dir}, m.sets...)
	return write(dir, s.Files)
}

// write writes the files that a directory lacks, and those that differ.
func write(dir string, files map[string]File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for path, f := range files {
		if text, err := root.ReadFile(path); err == nil && bytes.Equal(text, f.Text) {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if f.Runs {
			mode = 0o700
		}
		if err := replaceIn(root, path, f.Text, mode); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces a file at once.
func replace(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	return replaceIn(root, filepath.Base(path), text, mode)
}

// replaceIn writes a file under another name first, because another process of this
// user may read it.
func replaceIn(root *os.Root, path string, text []byte, mode fs.FileMode) error {
	part := path + "." + strconv.Itoa(os.Getpid()) + ".part"
	if err := root.WriteFile(part, text, mode); err != nil {
		return err
	}
	return root.Rename(part, path)
}

// Find returns the directory of the set that a path is in, as the path has it, and where
// that set is on this machine. Both are empty if the path is in no set.
func (m *Mirror) Find(path string) (there, here string) {
	for _, dir := range m.sets {
		digest := string(filepath.Separator) + filepath.Base(dir)
		before, rest, within := strings.Cut(path, digest)
		if within && filepath.IsAbs(before) && (rest == "" || rest[0] == filepath.Separator) {
			return before + digest, dir
		}
	}
	return "", ""
}
