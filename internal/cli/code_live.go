package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/internal/cli/live"
	"github.com/pawlrun/pawl/internal/sessions"
	"github.com/pawlrun/pawl/internal/view"
	"github.com/pawlrun/pawl/journal"
)

// liveChat is a session with a live region at the terminal.
type liveChat struct {
	*chat
	screen *live.Screen
	keys   *keyboard
	// begun has the actions that talk to runs, in the order of their keys.
	begun chan live.Action

	mu sync.Mutex
	// turn is the work that is shown, nil for none, and shown closed at its end.
	turn  *sessions.Turn
	shown chan struct{}
	// warned holds the warnings that were shown.
	warned map[string]bool
	// unread are the messages that are not read yet.
	unread unreadMessages
	// questions are the open questions. Only the view that is shown uses them.
	questions view.Questions
}

// canLive reports whether a live region can be drawn on the streams of the command.
func (a *app) canLive(plain bool) bool {
	if plain || os.Getenv("TERM") == "dumb" {
		return false
	}
	for _, stream := range []any{a.in, a.out, a.err} {
		if !screenOf(stream, os.Getenv).terminal {
			return false
		}
	}
	return true
}

// live works on the session until its user ends it.
func (t *chat) live(ctx context.Context, resume bool) error {
	in, _ := t.app.in.(*os.File)
	out, _ := t.app.out.(*os.File)
	l := &liveChat{chat: t, keys: newKeyboard(), begun: make(chan live.Action, 256), warned: map[string]bool{}}
	l.screen = live.NewScreen(in, out, &live.Model{Plain: !t.printer.screen.colour}, l.act)
	t.printer.region = l.screen.Send
	t.ask, t.surface, t.out = l.asks(), l, &printerWriter{t.printer}
	working, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go l.complete(working)
	go func() {
		defer close(done)
		if resume {
			if err := l.resumed(working); err != nil {
				l.complain(err)
			}
		}
		for {
			select {
			case a := <-l.begun:
				l.perform(working, a)
			case <-working.Done():
				return
			}
		}
	}()
	ending, release := interruptible(ctx)
	defer release()
	err := l.screen.Run(ending)
	t.printer.unlive()
	l.park()
	stop()
	<-done
	l.wait()
	return err
}

// complete refreshes what completes words of the input.
func (l *liveChat) complete(ctx context.Context) {
	l.screen.Send(live.Files{Names: files(ctx, l.dir), Commands: completions(l.dir)})
}

// resumed shows the state of the session that has been resumed.
func (l *liveChat) resumed(ctx context.Context) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return err
	}
	return l.opened(ctx, newest.Run)
}

// opened implements [surface].
func (l *liveChat) opened(ctx context.Context, newest journal.Run) error {
	go l.complete(ctx)
	now, err := l.host.Settings(ctx, l.id)
	if err != nil {
		return err
	}
	l.showMode(now.Mode)
	status, v, err := l.statusOf(ctx, newest.ID)
	if err != nil {
		return err
	}
	status.model = now.Model
	l.screen.Send(live.Status{Text: status.text(&v, 0)})
	return l.goOn(ctx, false)
}

// works implements [surface].
func (l *liveChat) works() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn != nil
}

// clip implements [surface].
func (l *liveChat) clip(text string) error {
	l.screen.Send(live.Clipboard{Text: text})
	return nil
}

// begin implements [surface].
func (l *liveChat) begin(ctx context.Context, line string, start func(context.Context) (*sessions.Turn, error)) error {
	turn, err := start(ctx)
	if err != nil {
		return err
	}
	l.said(line)
	l.follow(turn)
	return nil
}

// act performs an action of the live region. It must not wait.
func (l *liveChat) act(a live.Action) {
	switch a := a.(type) {
	case live.Answer:
		l.keys.take(a.Line)
	case live.Park:
		if a.Leaving {
			go l.screen.Send(live.Printed{Lines: []string{l.printer.screen.paint(faint, l.resumeCommand())}})
		}
		go l.park()
	case live.Quit:
		go l.screen.Quit()
	default:
		l.begun <- a
	}
}

// resumeCommand returns how the session is resumed.
func (l *liveChat) resumeCommand() string {
	return fmt.Sprintf("resume the session with: %s code --resume %s", l.app.invocation(), l.id)
}

// perform performs an action that talks to runs.
func (l *liveChat) perform(ctx context.Context, a live.Action) {
	var err error
	switch a := a.(type) {
	case live.Send:
		if err = l.say(ctx, a); err != nil {
			l.screen.Send(live.Draft{Text: a.Text})
		}
	case live.GoOn:
		err = l.goOn(ctx, true)
	case live.Command:
		l.printer.line(faint, harmless("/"+a.Line))
		err = l.command(ctx, a.Line)
	case live.Mode:
		err = l.nextMode(ctx)
	case live.Points:
		err = l.fork(ctx, nil)
	case live.Shell:
		err = l.shell(ctx, a.Line)
	}
	if err != nil {
		l.complain(err)
	}
}

// complain prints an error of an action, which does not end the session.
func (l *liveChat) complain(err error) {
	l.printer.line(red, harmless(l.app.describe(err)))
}

// say sends a message, and shows it once it is in the journal.
func (l *liveChat) say(ctx context.Context, m live.Send) error {
	message, err := l.message(m)
	if err != nil {
		return err
	}
	turn, err := l.host.Send(ctx, l.id, l.dir, message, l.ask)
	if err != nil {
		return err
	}
	if turn == nil { // a withdrawal that came after the end of the run
		return nil
	}
	if turn.After() == 0 { // a run that works prints the message when it is read
		l.said(m.Text)
	}
	l.follow(turn)
	return nil
}

// said prints a message of the user.
func (l *liveChat) said(text string) {
	for i, line := range strings.Split(harmless(text), "\n") {
		l.printer.line(bold, [2]string{"> ", "  "}[min(i, 1)]+line)
	}
}

// goOn asks the open questions of the session again, and shows its unread messages. A run
// that ended before it read some is continued with them, a parked one if that is wanted.
func (l *liveChat) goOn(ctx context.Context, wanted bool) error {
	chain, err := sessions.Chain(ctx, l.store, l.id)
	if err != nil {
		return err
	}
	newest := chain[len(chain)-1].Run
	if !wanted {
		if err := l.readUnread(ctx, newest.ID); err != nil {
			return err
		}
	}
	waiting, err := l.host.Waiting(ctx, newest)
	if err != nil {
		return err
	}
	var turn *sessions.Turn
	switch {
	case newest.State == journal.Ended && l.hasUnread():
		turn, err = l.host.GoOn(ctx, l.id, newest.ID, l.ask)
		l.readAll()
	case newest.State != journal.Ended && (wanted || len(waiting) > 0):
		turn, err = l.host.Ask(ctx, newest, l.ask)
	}
	if err == nil && turn != nil {
		l.follow(turn)
	}
	return err
}

// follow shows a turn in the background, after the one that is shown.
func (l *liveChat) follow(turn *sessions.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != nil && l.turn.Run == turn.Run && !turn.Drives() {
		return // the message reaches the run that is shown
	}
	before := l.shown
	shown := make(chan struct{})
	l.turn, l.shown = turn, shown
	go func() {
		defer close(shown)
		if before != nil {
			<-before
		}
		l.show(turn)
	}()
}

// show shows a turn until the run waits or has ended.
func (l *liveChat) show(turn *sessions.Turn) {
	l.screen.Send(live.Working{On: true})
	v := newTextView(&printerWriter{l.printer}, l.printer, l.printer.screen, turn.After(), l.app.invocation())
	v.both, v.session, v.command, v.next.pending = true, l.warned, turn.Command, l.app.pending
	// The run is shown until it has parked, also while the session ends.
	shown := &liveView{textView: v, chat: l, turn: turn}
	if err := show(turn.Tree(context.Background()), shown); err != nil {
		l.complain(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != turn {
		return
	}
	l.turn = nil
	l.screen.Send(live.Working{})
	go l.complete(context.Background())
	if shown.ended && len(l.unread) > 0 {
		select {
		case l.begun <- live.GoOn{}:
		default:
		}
	}
}

// park parks the run that is shown, if any.
func (l *liveChat) park() {
	l.mu.Lock()
	turn := l.turn
	l.mu.Unlock()
	if turn == nil {
		return
	}
	if err := turn.Interrupt(context.Background()); err != nil {
		l.complain(fmt.Errorf("the run goes on: %w", err))
	}
}

// wait waits until nothing is shown any more.
func (l *liveChat) wait() {
	l.mu.Lock()
	shown := l.shown
	l.mu.Unlock()
	if shown != nil {
		<-shown
	}
}

// asks returns the function that asks the user in the live region.
func (l *liveChat) asks() sessions.Ask {
	l.printer.asks = true
	return inTurn((&prompter{
		keys: l.keys, p: l.printer, by: itsUser(), check: l.controller.CheckArgs, call: l.callOf, chats: true,
		editor: cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")), suspend: l.screen.Suspend,
	}).ask)
}

// printerWriter writes whole lines through a printer.
type printerWriter struct{ p *printer }

func (w *printerWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		w.p.line(plain, styled(strings.TrimRight(line, "\n")))
	}
	return len(b), nil
}

// styled returns a line whose only sequences are styles.
func styled(line string) string {
	var b strings.Builder
	at := 0
	for _, m := range sgr.FindAllStringIndex(line, -1) {
		b.WriteString(harmless(line[at:m[0]]) + line[m[0]:m[1]])
		at = m[1]
	}
	return b.String() + harmless(line[at:])
}

// unlive makes the printer write to its stream again.
func (p *printer) unlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.region = nil
	p.screen.live = false
}
