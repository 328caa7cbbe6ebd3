package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
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
	do func(l *liveChat, ctx context.Context, args []string) error
}

// sessionCommands returns the table of the commands. What the command line has too is
// done by it.
func sessionCommands() []sessionCommand {
	return []sessionCommand{
		{name: "help", help: "list the commands", do: (*liveChat).help},
		{name: "model", args: "[PROVIDER/MODEL]", help: "show the model, or use another one from the next message on", do: (*liveChat).model},
		{name: "tools", help: "list the tools of the agent", do: (*liveChat).tools},
		{name: "mcp", help: "start the MCP servers of the agent file, and list their tools", line: func(n sessions.Link) []string { return []string{"check", n.Started.Source, "--connect"} }},
		{name: "diff", args: "[RUN RUN]", help: "compare two runs, or the last two of the session", do: (*liveChat).diff},
		{name: "cost", help: "show the state, outcome, cost and cycles of the last run", line: func(n sessions.Link) []string { return []string{"runs", "show", n.ID} }},
		{name: "context", help: "show how much of the context window is used", do: (*liveChat).contextUsed},
		{name: "compact", help: "shorten the conversation before the next message", do: (*liveChat).compactNext},
		{name: "approve-mode", args: "[default|accept-edits|plan]", help: "show or change the mode of the permissions; Shift-Tab changes it too", do: (*liveChat).approveMode},
		{name: "plan", help: "the mode plan: the agent may read, and change nothing", do: func(l *liveChat, ctx context.Context, _ []string) error {
			return l.approveMode(ctx, []string{string(policy.ModePlan)})
		}},
		{name: "fork", args: "[CYCLE]", help: "list the earlier points of the last run, or go on from one", do: (*liveChat).fork},
		{name: "resume", args: "[RUN]", help: "list the sessions of the tree, or change to one", do: (*liveChat).change},
		{name: "export", args: "FILE", help: "export the last run to a file", line: func(n sessions.Link) []string { return []string{"runs", "export", n.ID, "--out"} }},
		{name: "copy", help: "copy the last answer to the clipboard (OSC 52)", do: (*liveChat).copyAnswer},
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
func (l *liveChat) command(ctx context.Context, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	all := sessionCommands()
	i := slices.IndexFunc(all, func(c sessionCommand) bool { return c.name == name })
	if i < 0 {
		return l.ownCommand(ctx, name, rest)
	}
	l.printer.line(faint, harmless("/"+line))
	if all[i].do != nil {
		return all[i].do(l, ctx, strings.Fields(rest))
	}
	newest, err := l.newest(ctx)
	if err == nil {
		l.pawl(append(all[i].line(newest), strings.Fields(rest)...)...)
	}
	return err
}

// ownCommand sends the text of one of the user's commands, with the arguments in the
// place of $ARGUMENTS.
func (l *liveChat) ownCommand(ctx context.Context, name, args string) error {
	text, err := os.ReadFile(filepath.Join(l.dir, ownCommands, filepath.Base(name)+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("there is no command /%s; /help lists them, and %s/%[1]s.md would be one", name, ownCommands)
	}
	if err != nil {
		return err
	}
	return l.say(ctx, live.Send{Text: strings.ReplaceAll(string(text), "$ARGUMENTS", args)})
}

// pawl runs a command line of this program, and prints its output.
func (l *liveChat) pawl(args ...string) {
	line := []string{l.app.arg0, "--journal", l.app.journalPath}
	if l.app.configPath != "" {
		line = append(line, "--config", l.app.configPath)
	}
	w := &printerWriter{l.printer}
	execute(append(line, args...), streams{in: strings.NewReader(""), out: w, err: w}, l.app.shim, l.app.build)
}

// newest returns the newest run of the session.
func (l *liveChat) newest(ctx context.Context) (sessions.Link, error) {
	chain, err := sessions.Chain(ctx, l.store, l.id)
	if errors.Is(err, journal.ErrNotFound) {
		return sessions.Link{}, usagef("the session has no run yet: send a message first")
	}
	if err != nil {
		return sessions.Link{}, err
	}
	return chain[len(chain)-1], nil
}

func (l *liveChat) help(context.Context, []string) error {
	for _, c := range completions(l.dir) {
		l.printer.line(plain, fmt.Sprintf("  /%-12s %s", c.Word, c.Help))
	}
	l.printer.line(faint, "  '"+l.app.invocation()+" code --help' describes the keys; @ completes files")
	return nil
}

func (l *liveChat) model(_ context.Context, args []string) error {
	if len(args) > 0 {
		if !strings.Contains(args[0], "/") {
			return usagef("%q is no model; write it as provider/model; '%s models' lists them", args[0], l.app.invocation())
		}
		l.use = args[0]
	}
	l.printer.line(plain, "  model: "+cmp.Or(firstLine(l.use, 80), "that of the agent file")+", from the next run on")
	return nil
}

func (l *liveChat) tools(ctx context.Context, _ []string) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return err
	}
	var c struct {
		Tools []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(newest.Started.Config, &c); err != nil {
		return err
	}
	for _, t := range c.Tools {
		l.printer.line(plain, fmt.Sprintf("  %-16s %s", firstLine(t.Name, 40), firstLine(t.Description, 80)))
	}
	return nil
}

func (l *liveChat) diff(ctx context.Context, args []string) error {
	if len(args) == 0 {
		chain, err := sessions.Chain(ctx, l.store, l.id)
		if err != nil || len(chain) < 2 {
			return usagef("the session has fewer than two runs")
		}
		args = []string{chain[len(chain)-2].ID, chain[len(chain)-1].ID}
	}
	l.pawl(append([]string{"runs", "diff"}, args...)...)
	return nil
}

func (l *liveChat) contextUsed(context.Context, []string) error {
	l.mu.Lock()
	s := l.status
	l.mu.Unlock()
	window := s.windows[s.model]
	if s.used == 0 || window == 0 {
		return usagef("the size of the context is not known yet, or the window of the model %s is not", firstLine(s.model, 60))
	}
	l.printer.line(plain, fmt.Sprintf("  %d of %d tokens (%d %%) of %s", s.used, window, 100*s.used/int64(window), firstLine(s.model, 60)))
	return nil
}

// fork lists the cycles of the newest run, or goes on from the end of one.
func (l *liveChat) fork(ctx context.Context, args []string) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return l.points(ctx, newest.ID)
	}
	var out strings.Builder
	line := []string{l.app.arg0, "--journal", l.app.journalPath, "runs", "fork", newest.ID, "--cycle", args[0], "--no-run", "--json"}
	if execute(line, streams{in: strings.NewReader(""), out: &out, err: &printerWriter{l.printer}}, l.app.shim, l.app.build) != exitOK {
		return nil
	}
	var made forked
	if err := json.Unmarshal([]byte(out.String()), &made); err != nil {
		return err
	}
	if l.id, err = sessions.Of(ctx, l.store, made.Run); err != nil {
		return err
	}
	l.printer.line(plain, fmt.Sprintf("  the session goes on from cycle %s of run %s, as run %s; files stay as they are", firstLine(args[0], 10), newest.ID, made.Run))
	return nil
}

// points lists the cycles of a run.
func (l *liveChat) points(ctx context.Context, run string) error {
	var v view.View
	for e, err := range drive.Events(ctx, l.store, run, 0) {
		if err != nil {
			return err
		}
		v.Add(e.Event)
	}
	for _, n := range v.Entries() {
		if n.Kind == view.Cycle {
			l.printer.line(plain, fmt.Sprintf("  %-14s %s", n.Name, firstLine(n.Line, 80)))
		}
	}
	l.printer.line(faint, "  /fork CYCLE goes on from the end of one")
	return nil
}

// change lists the sessions of the tree, or changes to the session of a run.
func (l *liveChat) change(ctx context.Context, args []string) error {
	if len(args) == 0 {
		all, err := sessions.List(ctx, l.store, l.dir, maxSessions)
		for _, s := range all {
			l.printer.line(plain, "  "+summaryLine(s))
		}
		return err
	}
	l.mu.Lock()
	working := l.turn != nil
	l.mu.Unlock()
	if working {
		return usagef("a run works; Esc parks it first")
	}
	row, err := l.find(ctx, args[0])
	if err != nil {
		return err
	}
	id, err := sessions.Of(ctx, l.store, row.ID)
	if err != nil {
		return err
	}
	chain, err := sessions.Chain(ctx, l.store, id)
	if err != nil {
		return err
	}
	l.id = id
	if err := l.history(ctx, chain, &printerWriter{l.printer}); err != nil {
		return err
	}
	return l.goOn(ctx, false)
}

// copyAnswer puts the last answer into the clipboard of the terminal.
func (l *liveChat) copyAnswer(ctx context.Context, _ []string) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return err
	}
	answer := ""
	for e, err := range drive.AsStored(ctx, l.store, newest.ID, event.TypeRunCompleted) {
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
	l.screen.Send(live.Clipboard{Text: base64.StdEncoding.EncodeToString([]byte(answer))})
	l.printer.line(plain, fmt.Sprintf("  %s sent to the clipboard of the terminal", plural(len([]rune(answer)), "character")))
	return nil
}

// compactNext lets the next run of the session shorten the conversation first.
func (l *liveChat) compactNext(ctx context.Context, _ []string) error {
	if _, err := l.newest(ctx); err != nil {
		return err
	}
	l.compact = true
	l.printer.line(plain, "  the conversation is shortened before the next message is answered; a run that works is not changed")
	return nil
}
