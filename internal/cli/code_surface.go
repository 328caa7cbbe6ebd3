package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/control"
	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// surface shows a session.
type surface interface {
	// say sends a message, and begin starts a turn for a line of the user; both show what
	// follows.
	say(ctx context.Context, m live.Send) error
	begin(ctx context.Context, line string, start func(context.Context) (*sessions.Turn, error)) error
	// works reports whether a run is shown that works.
	works() bool
	// opened shows the state of another session, of which a run is the newest.
	opened(ctx context.Context, newest journal.Run) error
	showMode(mode policy.Mode)
	// clip puts a text in base64 into the clipboard.
	clip(text string) error
}

// opened implements [surface]: it asks the open questions of the session.
func (t *chat) opened(ctx context.Context, newest journal.Run) error {
	waiting, err := t.host.Waiting(ctx, newest)
	if err != nil || len(waiting) == 0 || t.ask == nil {
		return err
	}
	return t.follow(ctx, func(ctx context.Context) (*sessions.Turn, error) { return t.host.Ask(ctx, newest, t.ask) })
}

// message returns a message with the images and documents that its text names.
func (t *chat) message(m live.Send) (sessions.Message, error) {
	if err := textual("the message", m.Text); err != nil {
		return sessions.Message{}, err
	}
	media, err := attached(t.dir, m.Text)
	return sessions.Message{Text: m.Text, Media: media, Later: m.Later, Replaces: m.Replaces}, err
}

// say implements [surface].
func (t *chat) say(ctx context.Context, m live.Send) error {
	message, err := t.message(m)
	if err != nil {
		return err
	}
	return t.follow(ctx, func(ctx context.Context) (*sessions.Turn, error) {
		return t.host.Send(ctx, t.id, t.dir, message, t.ask)
	})
}

// begin implements [surface].
func (t *chat) begin(ctx context.Context, _ string, start func(context.Context) (*sessions.Turn, error)) error {
	return t.follow(ctx, start)
}

// works implements [surface]: a line is read only between runs.
func (*chat) works() bool { return false }

// showMode implements [surface].
func (*chat) showMode(policy.Mode) {}

// clip implements [surface].
func (*chat) clip(string) error { return usagef("without a live region nothing reaches the clipboard") }

// attachment matches what a message names with @, also in quotes.
var attachment = regexp.MustCompile(`(?:^|\s)@(?:"([^"]+)"|(\S+))`)

// attached returns the images and documents that a message names with @.
func attached(dir, text string) ([]llm.Media, error) {
	var paths []string
	for _, m := range attachment.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		if !live.Attaches(name) {
			continue
		}
		if rest, home := strings.CutPrefix(name, "~/"); home {
			user, err := os.UserHomeDir()
			if err != nil {
				return nil, err
			}
			name = filepath.Join(user, rest)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		paths = append(paths, name)
	}
	media, err := attach.Files(paths...)
	if err != nil {
		return nil, usagef("@: %s", control.Plain(err))
	}
	return media, nil
}
