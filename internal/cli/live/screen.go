package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// Screen is a live region on a terminal, with the events of its keyboard.
type Screen struct {
	in, out *os.File
	program *tea.Program
	loop    *loop
	// state is the terminal's state before [Screen.Run], and ended closed after it.
	state *term.State
	ended chan struct{}
}

// loop is the model as the event loop wants it. Only the event loop uses it.
type loop struct {
	model  *Model
	region *Region
	// act performs an action, without waiting.
	act func(Action)
	now func() time.Time
	// send is [Screen.Send].
	send func(any)
	// hidden reports that another program uses the terminal.
	hidden bool
	// err is why the region could not be drawn.
	err error
}

// Init implements [tea.Model].
func (l *loop) Init() tea.Cmd { return nil }

// View implements [tea.Model]: the region is drawn by [loop.Update].
func (l *loop) View() tea.View { return tea.View{} }

// Update implements [tea.Model].
func (l *loop) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var in any = msg
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		in = Key{Name: msg.Keystroke(), Text: msg.Text}
	case tea.PasteMsg:
		in = Paste{msg.Content}
	case tea.FocusMsg:
		in = Focus{On: true}
	case tea.BlurMsg:
		in = Focus{}
	case Size:
		l.region.Resized()
	case Clipboard:
		l.err = l.region.Clipboard(msg.Text)
	case hide:
		l.hidden = true
		l.err = l.region.Frame(l.model.Lines(), nil)
		close(msg.done)
	case show:
		l.hidden = false
	}
	for _, action := range l.model.Update(in, l.now()) {
		if n, is := action.(Notify); is {
			l.err = l.region.Notify(n.Text)
			continue
		}
		l.act(action)
	}
	if after := l.model.Wakes(); after > 0 {
		time.AfterFunc(after, func() { l.send(wake{}) })
	}
	if l.hidden {
		return l, nil
	}
	if err := l.region.Frame(l.model.Lines(), l.model.Rows()); err != nil {
		l.err = err
		return l, tea.Quit
	}
	return l, nil
}

// hide removes the region until [show], and wake draws it again.
type (
	wake struct{}
	hide struct{ done chan struct{} }
	show struct{}
)

// The modes of the terminal: bracketed paste, and events of its focus.
const (
	modesOn  = "\x1b[?2004h\x1b[?1004h"
	modesOff = "\x1b[?1004l\x1b[?2004l"
)

// NewScreen returns the live region of a model. act performs the actions; it is called
// by the event loop and must not wait.
func NewScreen(in, out *os.File, m *Model, act func(Action)) *Screen {
	l := &loop{model: m, region: NewRegion(out), act: act, now: time.Now}
	s := &Screen{in: in, out: out, loop: l, ended: make(chan struct{})}
	// The region draws itself: see decision 0109. The library's ticker has nothing to do.
	s.program = tea.NewProgram(l, tea.WithInput(in), tea.WithOutput(out), tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithFPS(1))
	l.send = s.Send
	return s
}

// Send sends a message to the model. It returns once the event loop has it.
func (s *Screen) Send(msg any) { s.program.Send(msg) }

// Quit ends [Screen.Run].
func (s *Screen) Quit() { s.program.Quit() }

// Run shows the region until it ends, and removes it.
func (s *Screen) Run(ctx context.Context) error {
	defer close(s.ended)
	var err error
	if s.state, err = term.MakeRaw(int(s.in.Fd())); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	defer s.leave()
	fmt.Fprint(s.out, modesOn)
	s.loop.model.Width, s.loop.model.Height = s.size()
	if err := s.loop.region.Frame(s.loop.model.Lines(), s.loop.model.Rows()); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go s.watch(watching)
	if _, err := s.program.Run(); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return s.loop.err
}

// watch sends the size of the terminal to the model, and ends the region with its context.
func (s *Screen) watch(ctx context.Context) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		select {
		case <-resized:
			w, h := s.size()
			s.Send(Size{w, h})
		case <-ctx.Done():
			s.Quit()
			return
		}
	}
}

func (s *Screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// leave removes the region and restores the terminal.
func (s *Screen) leave() {
	_ = s.loop.region.Frame(s.loop.model.Lines(), nil)
	fmt.Fprint(s.out, modesOff)
	_ = term.Restore(int(s.in.Fd()), s.state)
}

// Suspend removes the region and gives the terminal to another program, until resume is
// called.
func (s *Screen) Suspend() (resume func(), err error) {
	shown := make(chan struct{})
	s.Send(hide{shown})
	select {
	case <-shown:
	case <-s.ended:
		return nil, errEnded
	}
	if err := s.program.ReleaseTerminal(); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	fmt.Fprint(s.out, modesOff)
	_ = term.Restore(int(s.in.Fd()), s.state)
	return func() {
		_, _ = term.MakeRaw(int(s.in.Fd()))
		fmt.Fprint(s.out, modesOn)
		_ = s.program.RestoreTerminal()
		s.Send(show{})
	}, nil
}

// errEnded is returned for a region that is gone.
var errEnded = errors.New("live: the session has ended")
