package perform

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
)

const (
	// printInterval is how long output is collected before it is published.
	printInterval = 100 * time.Millisecond
	// maxPrinted bounds the output that is collected. A program that prints faster has the
	// beginning of it left out.
	maxPrinted = 32 << 10
)

// printed is the output of a call that is not published yet. The lock of the call guards
// it.
type printed struct {
	// secrets is nil until something is printed.
	secrets *secret.Stream
	text    []byte
	// at is the place of text in the output.
	at int64
	// timer publishes text, nil if none is set.
	timer *time.Timer
}

// Print implements [tool.Run].
func (c *toolCall) Print(output []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	p := &c.printed
	if p.secrets == nil {
		p.secrets = secret.NewStream(c.Secrets, c.shared.Secrets)
	}
	p.text = append(p.text, p.secrets.Write(string(output))...)
	if over := len(p.text) - maxPrinted; over > 0 {
		p.text = append(p.text[:0], p.text[over:]...)
		p.at += int64(over)
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(printInterval, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			p.timer = nil
			c.publishPrinted(wholeCharacters(p.text))
		})
	}
}

// publishRest publishes what is left of the output of a call that has ended. The lock is
// held.
func (c *toolCall) publishRest() {
	p := &c.printed
	if p.timer != nil {
		p.timer.Stop()
	}
	p.text = append(p.text, p.secrets.End()...)
	c.publishPrinted(len(p.text))
}

// publishPrinted publishes the first n bytes of the collected output. The lock is held.
func (c *toolCall) publishPrinted(n int) {
	p := &c.printed
	if n == 0 {
		return
	}
	text := strings.ToValidUTF8(string(p.text[:n]), "\uFFFD")
	c.Deltas.report(c.cycle, event.ToolOutput{CallID: c.a.CallID, Attempt: c.a.Attempt, At: p.at, Text: text})
	p.text = append(p.text[:0], p.text[n:]...)
	p.at += int64(len(text))
}

// wholeCharacters returns the length of a text without an incomplete character at its end.
func wholeCharacters(text []byte) int {
	for n := len(text) - 1; n >= max(0, len(text)-utf8.UTFMax); n-- {
		if utf8.RuneStart(text[n]) {
			if !utf8.FullRune(text[n:]) {
				return n
			}
			break
		}
	}
	return len(text)
}
