package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// keyboard gives what a person types to the question that is open. What was
// typed before a question stood on the screen answers nothing.
type keyboard struct {
	// terminal is what is typed at, nil where that is no file.
	terminal *os.File

	mu    sync.Mutex
	open  bool
	ended bool
	lines []string
	// came receives when a line or the end of the input has come, wanted when a
	// line is to be read. reading says that one is.
	came, wanted chan struct{}
	reading      bool
}

func newKeyboard() *keyboard {
	return &keyboard{came: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
}

// listen reads in the background, because a read of a terminal cannot be taken
// back when the question has become void. It reads only while a line is waited
// for, so that an editor has the terminal to itself.
func listen(in io.Reader) *keyboard {
	k := newKeyboard()
	k.terminal, _ = in.(*os.File)
	go func() {
		defer k.finish()
		for s := bufio.NewScanner(in); ; {
			<-k.wanted
			if !s.Scan() {
				return
			}
			k.take(s.Text())
		}
	}()
	return k
}

// finish says that nothing more will be typed.
func (k *keyboard) finish() {
	k.mu.Lock()
	k.ended = true
	k.mu.Unlock()
	k.wake()
}

func (k *keyboard) take(line string) {
	k.mu.Lock()
	k.reading = false
	if k.open {
		k.lines = append(k.lines, line)
	}
	k.mu.Unlock()
	k.wake()
}

func (k *keyboard) wake() {
	select {
	case k.came <- struct{}{}:
	default:
	}
}

// begin opens a question: what was typed before is forgotten.
func (k *keyboard) begin() {
	if k.terminal != nil {
		forgetTyped(k.terminal)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open, k.lines = true, nil
}

// end closes it.
func (k *keyboard) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open, k.lines = false, nil
}

var errNoAnswer = errors.New("no answer at the terminal")

// line waits for the next line that is typed.
func (k *keyboard) line(ctx context.Context) (string, error) {
	for {
		k.mu.Lock()
		if len(k.lines) > 0 {
			line := k.lines[0]
			k.lines = k.lines[1:]
			k.mu.Unlock()
			return line, ctx.Err()
		}
		ended := k.ended
		if !ended && !k.reading {
			k.reading = true
			select {
			case k.wanted <- struct{}{}:
			default:
			}
		}
		k.mu.Unlock()
		if ended {
			return "", errNoAnswer
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-k.came:
		}
	}
}
