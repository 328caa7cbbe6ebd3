package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// keyboard reads the answers to the open question. Input from before the question
// was shown is discarded.
type keyboard struct {
	// terminal is the terminal, nil if the input is not a file.
	terminal *os.File

	mu    sync.Mutex
	open  bool
	ended bool
	lines []string
	// came receives when a line or the end of input has arrived; wanted receives
	// when a line should be read. reading reports that a read is in progress.
	came, wanted chan struct{}
	reading      bool
}

func newKeyboard() *keyboard {
	return &keyboard{came: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
}

// listen reads in the background, because a terminal read cannot be cancelled when
// the question becomes void. It reads only while a line is awaited, so that an
// editor has the terminal to itself.
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

// finish marks the end of the input.
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

// begin opens a question and discards earlier input.
func (k *keyboard) begin() {
	if k.terminal != nil {
		forgetTyped(k.terminal)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open, k.lines = true, nil
}

// end closes the question.
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
