package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/engine"
	"github.com/pawlrun/pawl/internal/engine/perform"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/machine"
	"github.com/pawlrun/pawl/internal/machine/agent"
	"github.com/pawlrun/pawl/internal/sessions"
)

// codeFlags are the flags of 'pawl code'.
type codeFlags struct {
	sessionFlags
	// resume is the session, or one of its runs; pick if it is to be chosen.
	resume, text string
	// plain switches the live region off.
	plain bool
}

// pick is the value of --resume without a RUN.
const pick = "?"

// agentVariable names the agent file of sessions without --agent.
const agentVariable = "PAWL_AGENT"

func (a *app) codeCommand() *cobra.Command {
	var f codeFlags
	c := &cobra.Command{
		Use:   "code [DIR]",
		Short: "Work with an agent in a session at the terminal",
		Long: `A session with an agent in the working tree DIR. Each message is a run in the journal that continues the one before it,
so a session can be resumed after an exit or a crash, here or in an editor ('pawl acp').

Finished text is printed once and belongs to the terminal. Below it are the unfinished line of the answer, a status
line and the input, which works while the agent does.

  Enter         send the message; while a run works, it reads the message before its next request to the model
  Alt-Enter     send the message while a run works, to be read after its end
  Up            change an unread message, or take it back; otherwise what was typed before
  Ctrl-J        a new line; pasted text of more than 10 lines is folded
  Tab           complete a /command or an @file; /help lists the commands. @photo.png sends an image or a PDF
  !COMMAND      run a command with the rules and the sandbox of the agent file, as a run beside the session
  Shift-Tab     change the mode of the permissions: default, accept-edits, plan
  Esc           interrupt: the run parks, and the next message goes on; twice: earlier points of the run
  Ctrl-C        park, and print the command that resumes the session; twice: end
  Ctrl-D        end the session
  y, a, r, e    answer a question: once, with the rule shown, reject with a reason, edit the arguments in $EDITOR.
                Space and Enter approve nothing, and neither do keys within 500 ms of the question

With --plain, without a terminal and with TERM=dumb nothing is drawn again: lines are read and printed.

The agent file is that of --agent, or of $` + agentVariable + `; 'pawl init' writes one.`,
		Example: `  pawl code --agent ~/agents/coder.yaml
  pawl code ~/src/parser -p "Why does the parser accept this?"
  pawl code --resume
  pawl code --resume k7x2 -p "Now the same for the lexer."`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			// --resume takes its RUN as a word of its own, or none.
			if n := len(args); f.resume == pick && n > 0 {
				if _, err := directory("DIR", args[n-1]); err != nil {
					f.resume, args = args[n-1], args[:n-1]
				}
			}
			if len(args) > 1 {
				return usagef("got %d arguments, want DIR", len(args))
			}
			return a.code(c, f, append(args, ".")[0])
		},
	}
	f.flags(c)
	c.Flags().StringVar(&f.resume, "resume", "", "resume the session of `RUN`; without RUN, choose one of this tree")
	c.Flags().Lookup("resume").NoOptDefVal = pick
	c.Flags().BoolVar(&f.plain, "plain", false, "redraw nothing: read lines, for screen readers and logs")
	c.Flags().StringVarP(&f.text, "message", "p", "", "send this message, and end when the agent has answered")
	return c
}

// code works on a session at the terminal.
func (a *app) code(c *cobra.Command, f codeFlags, dir string) error {
	if f.agent == "" {
		f.agent = os.Getenv(agentVariable)
	}
	if f.agent == "" && f.resume == "" {
		return usagef("no agent file: give --agent FILE, or set $%s; 'pawl init' writes one", agentVariable)
	}
	dir, err := directory("DIR", dir)
	if err != nil {
		return err
	}
	o, file, err := a.sessionLaunch(c, f.sessionFlags)
	if err != nil {
		return err
	}
	s, err := a.open(c.Context(), toCreate)
	if err != nil {
		return err
	}
	defer s.close()
	s.chats = true
	if err := s.sentByPerson(c.Context()); err != nil {
		return err
	}
	p := newPrinter(a.err, screenOf(a.err, os.Getenv))
	p.screen.live = p.screen.live && !f.plain
	lively := f.text == "" && a.canLive(f.plain)
	var env perform.Env
	if !lively {
		s.asking(agent.ApproveAsk, p)(&env)
	}
	var tree guidance.Found
	if f.resume == "" { // before the live region takes the keyboard
		if tree, err = a.guide(c.Context(), p, dir, f.trust); err != nil {
			return err
		}
	}
	t := chat{
		session: s, printer: p, dir: dir, id: engine.NewID(), ask: env.Ask, out: a.out,
		host: &sessions.Host{Store: s.store, Engine: s.engine, Controller: s.controller, User: itsUser(), File: file, Launch: o},
	}
	t.host.Launch.Tree = tree
	t.surface = &t
	if f.resume != "" {
		if err := t.resume(c.Context(), f.resume, lively); leaves(err) {
			return err
		}
		if f.model != "" {
			if err := t.host.Choose(c.Context(), t.id, func(c *sessions.Choice) { c.Model = f.model }); err != nil {
				return err
			}
		}
	}
	switch {
	case f.text != "":
		return t.say(c.Context(), live.Send{Text: f.text})
	case lively:
		return t.live(c.Context(), f.resume != "")
	}
	return t.loop(c.Context())
}

// leaves reports whether the error of a message ends the session: a run that failed, or
// waits for a person, does not.
func leaves(err error) bool {
	exit, ended := errors.AsType[*exitError](err)
	return err != nil && (!ended || exit.err != nil || exit.code == exitCancelled)
}

// chat is a session at the terminal. By itself it is a surface without a live region.
type chat struct {
	*session
	host    *sessions.Host
	printer *printer
	// out takes what commands print.
	out     io.Writer
	ask     sessions.Ask
	id, dir string
	surface surface
}

// resume shows the session of a run, and asks its open questions again unless a live
// region does. [pick] lists the sessions.
func (t *chat) resume(ctx context.Context, named string, lively bool) error {
	if named == pick {
		return t.list(ctx)
	}
	row, err := t.find(ctx, named)
	if err != nil {
		return err
	}
	if t.id, err = sessions.Of(ctx, t.store, row.ID); err != nil {
		return err
	}
	chain, err := sessions.Chain(ctx, t.store, t.id)
	if err != nil {
		return err
	}
	if err := t.history(ctx, chain, t.app.out); err != nil {
		return err
	}
	if lively {
		return nil
	}
	return t.opened(ctx, chain[len(chain)-1].Run)
}

// mostHistory bounds the events of a resumed session that are shown again.
const mostHistory = 1000

// history prints the newest part of a session.
func (t *chat) history(ctx context.Context, chain []sessions.Link, w io.Writer) error {
	t.dir = chain[len(chain)-1].Started.Workspace
	first, left := len(chain)-1, int64(mostHistory)
	for ; first > 0 && chain[first].Seq < left; first-- {
		left -= chain[first].Seq
	}
	after := max(chain[first].Seq-left, 0)
	if first > 0 || after > 0 {
		if _, err := fmt.Fprintf(w, "(what came before: %s runs log %s)\n", t.app.invocation(), chain[first].ID); err != nil {
			return err
		}
	}
	for i, l := range chain[first:] {
		if i > 0 {
			after = 0
		}
		if err := t.writeLog(ctx, l.ID, after, w); err != nil {
			return err
		}
	}
	return nil
}

// maxSessions bounds the sessions of a list.
const maxSessions = 20

// list prints the sessions of the working tree, the newest first.
func (t *chat) list(ctx context.Context) error {
	all, err := sessions.List(ctx, t.store, t.dir, maxSessions)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return usagef("%s has no session; leave --resume out to begin one", onOneLine(t.dir))
	}
	for _, s := range all {
		if err := t.app.printf("%s\n", summaryLine(s)); err != nil {
			return err
		}
	}
	return usagef("name the session: %s code --resume %s", t.app.invocation(), all[0].ID)
}

// summaryLine returns a session in one line.
func summaryLine(s sessions.Summary) string {
	return fmt.Sprintf("%s  %s  %3d runs  %s", s.ID, s.Newest.Updated.Local().Format("2006-01-02 15:04"), s.Runs, firstLine(s.Title, 60))
}

// loop reads messages until the input ends, or a run is parked by Ctrl-C.
func (t *chat) loop(ctx context.Context) error {
	keys := t.app.typed()
	for {
		keys.begin() // before the prompt: what is typed once it is there counts
		t.printer.ask(bold, "> ")
		line, err := keys.line(ctx)
		keys.end()
		if errors.Is(err, errNoAnswer) {
			t.printer.withdraw("")
			return nil
		}
		if err != nil {
			return err
		}
		t.printer.answered()
		switch line := live.Line(line, false).(type) {
		case live.Command:
			err = t.command(ctx, line.Line)
		case live.Shell:
			err = t.shell(ctx, line.Line)
		case live.Send:
			err = t.say(ctx, line)
		}
		if exit, is := errors.AsType[*exitError](err); is && exit.code == exitUsage {
			t.printer.line(red, harmless(t.app.describe(err)))
		} else if leaves(err) {
			return err
		}
	}
}

// follow shows a turn until the run waits or has ended. Ctrl-C parks the run.
func (t *chat) follow(ctx context.Context, begin func(context.Context) (*sessions.Turn, error)) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	turn, err := begin(ctx)
	if err != nil {
		return usageError(err)
	}
	interrupt := func() {
		if err := turn.Interrupt(context.Background()); err != nil {
			fmt.Fprintf(t.app.err, "pawl: the run goes on: %s\n", t.app.describe(err))
		}
	}
	defer context.AfterFunc(ctx, interrupt)()
	v := t.app.textView(output{after: turn.After()}, t.printer)
	v.command = turn.Command
	end := &lastEvent{display: v}
	if err := show(turn.Events(context.WithoutCancel(ctx)), end); err != nil {
		interrupt()
		return failure(err)
	}
	return end.exit(t, turn.Run)
}

// lastEvent shows events, and keeps how the run stopped.
type lastEvent struct {
	display
	state machine.State
}

func (l *lastEvent) show(e event.Event) error {
	switch d := e.Data.(type) {
	case event.RunCompleted:
		l.state.Outcome = &d.Outcome
	case event.RunParked:
		l.state.Parked = &d
	case event.RunResumed:
		l.state.Parked = nil
	}
	return l.display.show(e)
}

// exit returns the exit code of a message, and prints how an interrupted session is
// resumed.
func (l *lastEvent) exit(t *chat, run string) error {
	if l.state.Outcome == nil && l.state.Parked == nil {
		return failure(fmt.Errorf("run %s is not driven any more; see '%s runs show %[1]s'", run, t.app.invocation()))
	}
	code := exitOfState(l.state)
	if l.state.Outcome == nil && code == exitCancelled {
		fmt.Fprintf(t.app.err, "resume the session with: %s code --resume %s\n", t.app.invocation(), t.id)
	}
	return withCode(code)
}
