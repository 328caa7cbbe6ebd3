package shell

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/host/sandbox"
	"github.com/pawlrun/pawl/tool"
)

// Service is a program that runs beside the calls of a run until it is closed, such as
// a server that reads requests from its input. It is confined like a command. Nothing
// that it starts outlives it or this process.
type Service struct {
	// In is the program's stdin, Out its stdout.
	In  io.WriteCloser
	Out io.ReadCloser

	errs      io.Closer
	terminate func()
	kill      func()
	ended     chan struct{}
	close     sync.Once
}

// closeGrace is how long a program may take to end after its input has ended.
const closeGrace = time.Second

// Serve starts a program. errs receives its stderr, from one goroutine. Only the Argv
// and Env of c are used.
func (o Options) Serve(c tool.Invocation, errs io.Writer) (*Service, error) {
	o = o.withDefaults()
	p, err := o.process(tool.Invocation{Argv: c.Argv, Env: c.Env})
	if err != nil {
		return nil, err
	}
	out, outIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outIn.Close()
	text, textIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	defer textIn.Close()
	s := &Service{Out: out, errs: text, ended: make(chan struct{})}
	switch {
	case o.boxed(false):
		err = s.startIn(o.Sandbox, p, outIn, textIn)
	case o.Bare != nil:
		err = s.startIn(o.Bare, p, outIn, textIn)
	default:
		err = s.start(p, outIn, textIn)
	}
	if err != nil {
		return nil, errors.Join(o.startError(err), out.Close(), text.Close())
	}
	go func() { _, _ = io.Copy(errs, text) }()
	return s, nil
}

func (s *Service) startIn(box *sandbox.Box, p process, out, errs *os.File) error {
	in, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	started, err := box.Start(sandbox.Command{Args: p.argv, Dir: p.dir, Env: p.env, Input: in, Output: out, Errors: errs, Lasting: true})
	if err != nil {
		return errors.Join(err, input.Close())
	}
	s.In, s.terminate, s.kill = input, started.Terminate, started.Kill
	go func() {
		defer close(s.ended)
		<-started.Ended()
		_, _ = started.Wait()
	}()
	return nil
}

// start is [Service.startIn] without a box.
func (s *Service) start(p process, out, errs *os.File) error {
	p.input = []byte{}
	started := make(chan error)
	go func() {
		// The thread that starts a program must live as long as the program, see
		// [spawn].
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		g, input, err := startGated(&exec.Cmd{Dir: p.dir, Env: p.env, Stdout: out, Stderr: errs}, p)
		if err != nil {
			started <- err
			return
		}
		s.In, s.kill = input, g.stop
		s.terminate = func() { go g.stop() }
		started <- nil
		g.awaitLeader()
		_, _, _ = g.end()
		close(s.ended)
	}()
	return <-started
}

// Ended returns a channel that is closed when the program and all that it started have
// ended.
func (s *Service) Ended() <-chan struct{} { return s.ended }

// Close ends the program's input, and stops the program if it does not end by itself.
// It returns when no process of it runs.
func (s *Service) Close() error {
	s.close.Do(func() {
		_ = s.In.Close()
		if !wait(s.ended, closeGrace) {
			s.terminate()
			if !wait(s.ended, termGrace) {
				s.kill()
			}
		}
		<-s.ended
		_ = s.Out.Close()
		_ = s.errs.Close()
	})
	return nil
}
