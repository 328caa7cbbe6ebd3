package guidance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/view/terminal"
)

// Trust stores the decisions of a user, in files of a directory that no tool can write.
type Trust struct {
	Dir string
	// All trusts everything without a question.
	All bool
}

// Question asks a user whether to trust something of a working tree.
type Question struct {
	Root, Digest string
	// What has one line for each text or skill, and Why says what trust means.
	What []string
	Why  string
}

// Answer is the answer to a [Question].
type Answer int

// The answers. One that is missing is not kept.
const (
	Missing Answer = iota
	Yes
	No
)

// Ask returns whether the user trusts something, and asks unless that was decided
// before; ask is nil if there is no user.
func (t Trust) Ask(ctx context.Context, q Question, ask func(context.Context, Question) (Answer, error)) (Answer, error) {
	if t.All {
		return Yes, t.keep(q, true)
	}
	trusted, decided, err := t.decision(q)
	switch {
	case err != nil:
		return Missing, err
	case trusted:
		return Yes, nil
	case decided:
		return No, nil
	case ask == nil:
		return Missing, nil
	}
	answer, err := ask(ctx, q)
	if err != nil || answer == Missing {
		return Missing, err
	}
	return answer, t.keep(q, answer == Yes)
}

// Use returns f if the user trusts it, and otherwise a Found whose notes name what is
// left out.
func (t Trust) Use(ctx context.Context, f Found, ask func(context.Context, Question) (Answer, error)) (Found, error) {
	if f.Empty() {
		return f, nil
	}
	answer, err := t.Ask(ctx, f.question(), ask)
	if err != nil || answer == Yes {
		return f, err
	}
	left := Found{Root: f.Root, Notes: f.Notes}
	left.Notes = append(left.Notes, fmt.Sprintf("not used, because you do not trust them: %s; --trust uses them", strings.Join(f.names(), ", ")))
	return left, nil
}

// question returns the question whether to trust the texts and skills of a tree.
func (f *Found) question() Question {
	q := Question{Root: f.Root, Digest: f.Digest(), Why: "The agent follows them as if you had written them."}
	for _, t := range f.Texts {
		line := fmt.Sprintf("%s (%d bytes)", t.Path, len(t.Text))
		if terminal.Harmless(t.Text) != strings.ReplaceAll(t.Text, "\r\n", "\n") {
			line += ", WITH INVISIBLE CHARACTERS"
		}
		q.What = append(q.What, line)
	}
	for _, s := range f.Skills {
		q.What = append(q.What, "the skill "+s.Name+": "+s.Description)
	}
	return q
}

// names returns the names of the texts and skills.
func (f *Found) names() []string {
	var names []string
	for _, t := range f.Texts {
		names = append(names, t.Path)
	}
	for _, s := range f.Skills {
		names = append(names, "the skill "+s.Name)
	}
	return names
}

// file returns the file of a decision.
func (t Trust) file(q Question) string {
	return filepath.Join(t.Dir, "trust", fmt.Sprintf("%x", sha256.Sum256([]byte(q.Root+"\x00"+q.Digest))))
}

// The contents of a decision's file.
const (
	yes = "trusted\n"
	no  = "not trusted\n"
)

// decision returns whether the user trusts something, and whether the user has decided
// that.
func (t Trust) decision(q Question) (trusted, decided bool, err error) {
	data, err := os.ReadFile(t.file(q))
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("guidance: %w", err)
	}
	return string(data) == yes, true, nil
}

// keep keeps a decision. One that was written in part counts as no.
func (t Trust) keep(q Question, trusted bool) error {
	file, text := t.file(q), no
	if trusted {
		text = yes
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("guidance: %w", err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("guidance: %w", err)
	}
	return nil
}
