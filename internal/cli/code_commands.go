package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/internal/rules/policy"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// sessionCommand is a command of a session, behind a slash.
type sessionCommand struct {
	name, args, help string
	// line returns the command line of pawl that it stands for, with the arguments added
	// to it; nil for a command that only a session has.
	line func(newest sessions.Link) []string
	// do performs the command.
	do func(t *chat, ctx context.Context, args []string) error
}

// sessionCommands returns the table of the commands. What the command line has too is
// done by it.
func sessionCommands() []sessionCommand {
	return []sessionCommand{
		{name: "help", help: "list the commands", do: (*chat).help},
		{name: "model", args: "[PROVIDER/MODEL]", help: "show the model, or use another one from the next run on", do: (*chat).model},
		{name: "tools", help: "list the tools of the agent", do: (*chat).tools},
		{name: "mcp", help: "start the MCP servers of the agent file, and list their tools", do: (*chat).mcp},
		{name: "diff", args: "[RUN RUN]", help: "compare two runs, or the last two of the session", do: (*chat).diff},
		{name: "cost", help: "show the state, outcome, cost and cycles of the last run", line: func(n sessions.Link) []string { return []string{"runs", "show", n.ID} }},
		{name: "context", help: "show how much of the context window is used", do: (*chat).contextUsed},
		{name: "compact", help: "shorten the conversation before the next run answers", do: (*chat).compactNext},
		{name: "approve-mode", args: "[default|accept-edits|plan]", help: "show or change the mode of the permissions; Shift-Tab changes it too", do: (*chat).approveMode},
		{name: "plan", help: "the mode plan: the agent may read, and change nothing", do: func(t *chat, ctx context.Context, _ []string) error {
			return t.approveMode(ctx, []string{string(policy.ModePlan)})
		}},
		{name: "fork", args: "[CYCLE]", help: "list the earlier points of the last run, or go on from one", do: (*chat).fork},
		{name: "resume", args: "[RUN]", help: "list the sessions of the tree, or change to one", do: (*chat).change},
		{name: "export", args: "FILE", help: "export the last run to a file", line: func(n sessions.Link) []string { return []string{"runs", "export", n.ID, "--out"} }},
		{name: "copy", help: "copy the last answer to the clipboard (OSC 52)", do: (*chat).copyAnswer},
	}
}

// ownCommands is where the user's commands are, below the working directory.
const ownCommands = ".pawl/commands"

// completions returns the words that complete a slash.
func completions(dir string) []live.Completion {
	var words []live.Completion
	for _, c := range sessionCommands() {
		words = append(words, live.Completion{Word: c.name, Help: strings.TrimSpace(c.args + "  " + c.help)})
	}
	files, _ := filepath.Glob(filepath.Join(dir, ownCommands, "*.md"))
	for _, f := range files {
		text, _ := readFileBounded(f)
		words = append(words, live.Completion{Word: strings.TrimSuffix(filepath.Base(f), ".md"), Help: firstLine(string(text), 80)})
	}
	return words
}

// files returns the files of the working tree that git knows, for completion.
func files(ctx context.Context, dir string) []string {
	c := exec.CommandContext(ctx, "git", "-C", dir, "-c", "core.fsmonitor=", "ls-files", "-co", "--exclude-standard", "-z")
	out, err := c.Output()
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

// command performs a line behind a slash.
func (t *chat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	all := sessionCommands()
	i := slices.IndexFunc(all, func(c sessionCommand) bool { return c.name == name })
	if i < 0 {
		return t.ownCommand(ctx, name, rest)
	}
	c, args := all[i], strings.Fields(rest)
	if c.do != nil {
		return c.do(t, ctx, args)
	}
	if c.args != "" && len(args) == 0 {
		return usagef("write /%s %s", c.name, c.args)
	}
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	t.pawl(t.out, append(c.line(newest), args...)...)
	return nil
}

// ownCommand sends the text of one of the user's commands, with the arguments in the
// place of $ARGUMENTS.
func (t *chat) ownCommand(ctx context.Context, name, args string) error {
	text, err := os.ReadFile(filepath.Join(t.dir, ownCommands, filepath.Base(name)+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("there is no command /%s; /help lists them, and %s/%[1]s.md would be one", name, ownCommands)
	}
	if err != nil {
		return err
	}
	return t.surface.say(ctx, live.Send{Text: strings.ReplaceAll(string(text), "$ARGUMENTS", args)})
}

// print prints a line of a command.
func (t *chat) print(format string, args ...any) {
	_, _ = fmt.Fprintln(t.out, harmless(fmt.Sprintf(format, args...)))
}

// pawl runs a command line of this program, and returns its exit code.
func (t *chat) pawl(out io.Writer, args ...string) int {
	line := []string{t.app.arg0, "--journal", t.app.journalPath}
	if t.app.configPath != "" {
		line = append(line, "--config", t.app.configPath)
	}
	return execute(append(line, args...), streams{in: strings.NewReader(""), out: out, err: t.out}, t.app.shim, t.app.build)
}

// newest returns the newest run of the session.
func (t *chat) newest(ctx context.Context) (sessions.Link, error) {
	chain, err := sessions.Chain(ctx, t.store, t.id)
	if errors.Is(err, journal.ErrNotFound) {
		return sessions.Link{}, usagef("the session has no run yet: send a message first")
	}
	if err != nil {
		return sessions.Link{}, err
	}
	return chain[len(chain)-1], nil
}

// started returns the first event of the newest run. A session without runs has that of
// the run that its first message would start.
func (t *chat) started(ctx context.Context) (event.RunStarted, error) {
	newest, err := t.newest(ctx)
	if err == nil || t.host.File == nil {
		return newest.Started, err
	}
	f, err := t.host.File()
	if err != nil {
		return event.RunStarted{}, err
	}
	o := t.host.Launch
	o.Workspace = t.dir
	started, env, err := f.Launch("x", o)
	if err == nil && env.Close != nil {
		err = env.Close()
	}
	return started, err
}

func (t *chat) help(context.Context, []string) error {
	for _, c := range completions(t.dir) {
		t.print("  /%-12s %s", c.Word, c.Help)
	}
	t.print("  '%s code --help' describes the keys; @ completes files", t.app.invocation())
	return nil
}

func (t *chat) model(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if !strings.Contains(args[0], "/") {
			return usagef("%q is no model; write it as provider/model; '%s models' lists them", args[0], t.app.invocation())
		}
		if err := t.host.Choose(ctx, t.id, func(c *sessions.Choice) { c.Model = args[0] }); err != nil {
			return err
		}
	}
	now, err := t.host.Settings(ctx, t.id)
	if err != nil {
		return err
	}
	t.print("  model: %s, from the next run on", cmp.Or(firstLine(cmp.Or(now.Model, t.host.Launch.Model), 80), "that of the agent file"))
	return nil
}

func (t *chat) tools(ctx context.Context, _ []string) error {
	started, err := t.started(ctx)
	if err != nil {
		return err
	}
	var c struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(started.Config, &c); err != nil {
		return err
	}
	for _, tool := range c.Tools {
		t.print("  %-16s %s", firstLine(tool.Name, 40), firstLine(tool.Description, 80))
	}
	return nil
}

func (t *chat) mcp(ctx context.Context, _ []string) error {
	started, err := t.started(ctx)
	if err == nil {
		t.pawl(t.out, "check", started.Source, "--connect")
	}
	return err
}

func (t *chat) diff(ctx context.Context, args []string) error {
	if len(args) == 0 {
		chain, err := sessions.Chain(ctx, t.store, t.id)
		if err != nil || len(chain) < 2 {
			return usagef("the session has fewer than two runs")
		}
		args = []string{chain[len(chain)-2].ID, chain[len(chain)-1].ID}
	}
	t.pawl(t.out, append([]string{"runs", "diff"}, args...)...)
	return nil
}

func (t *chat) contextUsed(ctx context.Context, _ []string) error {
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	s, _, err := t.statusOf(ctx, newest.ID)
	if err != nil {
		return err
	}
	switch model, window := firstLine(s.model, 60), s.windows[s.model]; {
	case s.used == 0:
		return usagef("the size of the context is not known before the first answer")
	case window == 0:
		t.print("  %d tokens; the window of the model %s is not known", s.used, model)
	default:
		t.print("  %d of %d tokens (%d %%) of %s", s.used, window, 100*s.used/int64(window), model)
	}
	return nil
}

// fork lists the cycles of the newest run, or goes on from the end of one.
func (t *chat) fork(ctx context.Context, args []string) error {
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return t.points(ctx, newest.ID)
	}
	if err := t.idle(); err != nil {
		return err
	}
	chosen, err := t.host.Chosen(ctx, t.id)
	if err != nil {
		return err
	}
	var out strings.Builder
	if t.pawl(&out, "runs", "fork", newest.ID, "--cycle", args[0], "--no-run", "--json") != exitOK {
		return nil
	}
	var made forked
	if err := json.Unmarshal([]byte(out.String()), &made); err != nil {
		return err
	}
	if t.id, err = sessions.Of(ctx, t.store, made.Run); err != nil {
		return err
	}
	t.print("  the session goes on from cycle %s of run %s, as run %s; files stay as they are", firstLine(args[0], 10), newest.ID, made.Run)
	return t.host.Choose(ctx, t.id, func(c *sessions.Choice) { c.Mode, c.Model, c.Compact = chosen.Mode, chosen.Model, chosen.Compact })
}

// idle returns an error while a run works.
func (t *chat) idle() error {
	if t.surface.works() {
		return usagef("a run works; Esc parks it first")
	}
	return nil
}

// points lists the cycles of a run.
func (t *chat) points(ctx context.Context, run string) error {
	var v view.View
	for e, err := range drive.Events(ctx, t.store, run, 0) {
		if err != nil {
			return err
		}
		v.Add(e.Event)
	}
	for _, n := range v.Entries() {
		if n.Kind == view.Cycle {
			t.print("  %-14s %s", n.Name, firstLine(n.Line, 80))
		}
	}
	t.print("  /fork CYCLE goes on from the end of one")
	return nil
}

// change lists the sessions of the tree, or changes to the session of a run.
func (t *chat) change(ctx context.Context, args []string) error {
	if len(args) == 0 {
		all, err := sessions.List(ctx, t.store, t.dir, maxSessions)
		for _, s := range all {
			t.print("  %s", summaryLine(s))
		}
		return err
	}
	if err := t.idle(); err != nil {
		return err
	}
	row, err := t.find(ctx, args[0])
	if err != nil {
		return err
	}
	id, err := sessions.Of(ctx, t.store, row.ID)
	if err != nil {
		return err
	}
	chain, err := sessions.Chain(ctx, t.store, id)
	if err != nil {
		return err
	}
	t.id = id
	if err := t.history(ctx, chain, t.out); err != nil {
		return err
	}
	return t.surface.opened(ctx, chain[len(chain)-1].Run)
}

// copyAnswer puts the last answer into the clipboard of the terminal.
func (t *chat) copyAnswer(ctx context.Context, _ []string) error {
	newest, err := t.newest(ctx)
	if err != nil {
		return err
	}
	answer := ""
	for e, err := range drive.AsStored(ctx, t.store, newest.ID, event.TypeRunCompleted) {
		if err != nil {
			return err
		}
		if d, is := e.Data.(event.RunCompleted); is {
			answer = d.Outcome.FinalOutput
		}
	}
	if answer == "" {
		return usagef("the last run has no answer")
	}
	if err := t.surface.clip(base64.StdEncoding.EncodeToString([]byte(answer))); err != nil {
		return err
	}
	t.print("  %s sent to the clipboard of the terminal", plural(len([]rune(answer)), "character"))
	return nil
}

// compactNext lets the next run of the session shorten the conversation first.
func (t *chat) compactNext(ctx context.Context, _ []string) error {
	if _, err := t.newest(ctx); err != nil {
		return err
	}
	t.print("  the conversation is shortened before the next message is answered; a run that works is not changed")
	return t.host.Choose(ctx, t.id, func(c *sessions.Choice) { c.Compact = true })
}
