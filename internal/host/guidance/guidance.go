// Package guidance finds the instructions and skills of a working tree, and stores
// which of them the user trusts.
//
// An AGENTS.md is a text for the agent. A skill is a directory with a SKILL.md, whose
// front matter says what it is for. Both come from the authors of the tree, so they are
// used as the owner's text only after the owner agreed to what they contain.
package guidance

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/resolve"
)

// File is the name of a file with instructions.
const File = "AGENTS.md"

// skillDirs are the directories of a tree that contain skills, the preferred one first.
var skillDirs = [...]string{".pawl/skills", ".agents/skills"}

// The bounds of instructions and skills, in bytes and in numbers.
const (
	maxText   = 64 << 10
	maxTexts  = 256 << 10
	maxSkills = 50
)

// Text is a text with the file that it was read from.
type Text struct {
	event.TextFile
	Text string
}

// Found holds the instructions and skills of a tree.
type Found struct {
	// Root is the top of the tree.
	Root string
	// Texts are the instructions, the outermost ones first.
	Texts  []Text
	Skills []event.SkillFile
	// Notes describe what is not used, and why.
	Notes []string
}

// Empty reports whether the tree has neither.
func (f *Found) Empty() bool { return len(f.Texts) == 0 && len(f.Skills) == 0 }

// Digest identifies all texts and skills together.
func (f *Found) Digest() string {
	h := sha256.New()
	for _, t := range f.Texts {
		fmt.Fprintf(h, "%q %s\n", t.Path, t.Digest)
	}
	for _, s := range f.Skills {
		fmt.Fprintf(h, "%q %s\n", s.Path, s.Digest)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// System returns the instructions as sections of a system text.
func (f *Found) System() string {
	var parts []string
	for _, t := range f.Texts {
		parts = append(parts, "## "+t.Path+"\n\n"+strings.TrimSpace(t.Text))
	}
	return strings.Join(parts, "\n\n")
}

// List returns the section of a system text that offers skills, "" for none.
func List(skills []event.SkillFile) string {
	if len(skills) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Skills\n\nA skill says how a kind of task is done. Read it with skill.read before such a task.\n")
	for _, s := range skills {
		fmt.Fprintf(&b, "\n- %s: %s", s.Name, s.Description)
	}
	return b.String()
}

// In finds the instructions and skills for a directory: the instructions from the top of its
// repository down to the directory, and the skills of these directories, of which the
// innermost wins. A directory outside of a repository is its own tree. Links that leave
// the tree are not followed.
func In(dir string) (Found, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Found{}, fmt.Errorf("guidance: %w", err)
	}
	f := Found{Root: dir}
	if repository, ok := resolve.FindRepository(dir); ok {
		f.Root = repository.Top
	}
	within, err := filepath.Rel(f.Root, dir)
	if err != nil {
		return Found{}, fmt.Errorf("guidance: %w", err)
	}
	root, err := os.OpenRoot(f.Root)
	if err != nil {
		return Found{}, fmt.Errorf("guidance: %w", err)
	}
	defer root.Close()
	levels := levelsTo(filepath.ToSlash(within))
	left := maxTexts
	for _, level := range levels {
		left -= f.addText(root, path.Join(level, File), left)
	}
	for _, level := range slices.Backward(levels) {
		for _, name := range skillDirs {
			f.addSkills(root, path.Join(level, name))
		}
	}
	return f, nil
}

// levelsTo returns the directories from the top to a directory, including both.
func levelsTo(within string) []string {
	levels := []string{"."}
	if within == "." {
		return levels
	}
	at := ""
	for part := range strings.SplitSeq(within, "/") {
		at = path.Join(at, part)
		levels = append(levels, at)
	}
	return levels
}

// addText adds the instructions of a file if it exists, and returns their length.
func (f *Found) addText(root *os.Root, name string, left int) int {
	data, err := read(root, name, min(maxText, left))
	if err != nil {
		f.leaveOut(name, err)
		return 0
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return 0
	}
	f.Texts = append(f.Texts, Text{event.TextFile{Path: name, Digest: digest(data)}, string(data)})
	return len(data)
}

// addSkills adds the skills of a directory. A name that is taken is skipped.
func (f *Found) addSkills(root *os.Root, dir string) {
	opened, err := root.Open(dir)
	if err != nil {
		f.leaveOut(dir, err)
		return
	}
	defer opened.Close()
	names, err := opened.Readdirnames(maxSkills + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		f.leaveOut(dir, err)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		file := path.Join(dir, name, skillFile)
		if len(f.Skills) == maxSkills {
			f.leaveOut(file, fmt.Errorf("at most %d skills are used", maxSkills))
			return
		}
		s, err := readSkill(root, file)
		if err != nil {
			f.leaveOut(file, err)
			continue
		}
		s.Path = filepath.Join(f.Root, filepath.FromSlash(file))
		if !slices.ContainsFunc(f.Skills, func(other event.SkillFile) bool { return other.Name == s.Name }) {
			f.Skills = append(f.Skills, s)
		}
	}
}

// leaveOut notes why a file is not used. One that does not exist needs no note.
func (f *Found) leaveOut(name string, err error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	f.Notes = append(f.Notes, fmt.Sprintf("%s is not used: %v", name, err))
}

// read reads a regular file with text in UTF-8. It does not wait for the writer of a
// pipe.
func read(root *os.Root, name string, most int) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	return data, nil
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
