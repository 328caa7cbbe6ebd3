package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/tool/shell"
)

// maxFrame bounds one message of a server.
const maxFrame = 16 << 20

// maxShownLine bounds how much a warning shows of an invalid line.
const maxShownLine = 200

// stdio communicates with a program, one message per line. An invalid line causes a
// warning; a message that is too long fails the call that it answers.
type stdio struct {
	program *shell.Service
	in      *bufio.Reader
	warn    func(text string)
	// changed is called when the server announces a change of its tools, before any
	// later message is delivered, because the library calls its handler at some later
	// time.
	changed func()

	writing sync.Mutex
	mu      sync.Mutex
	// pending holds the calls without an answer, failed the answers that replace
	// messages that were too long.
	pending map[jsonrpc.ID]bool
	failed  []jsonrpc.Message
}

var (
	_ sdk.Transport  = (*stdio)(nil)
	_ sdk.Connection = (*stdio)(nil)
)

func newStdio(program *shell.Service, warn func(text string), changed func()) *stdio {
	return &stdio{program: program, in: bufio.NewReaderSize(program.Out, 64<<10), warn: warn, changed: changed, pending: map[jsonrpc.ID]bool{}}
}

// Connect implements [sdk.Transport].
func (c *stdio) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements [sdk.Connection]; a program has one session.
func (c *stdio) SessionID() string { return "" }

// Close implements [sdk.Connection].
func (c *stdio) Close() error { return c.program.Close() }

// Read implements [sdk.Connection].
func (c *stdio) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if m := c.nextFailed(); m != nil {
			return m, nil
		}
		line, cut, err := c.line()
		switch {
		case cut != nil:
			c.tooLong(cut)
			continue
		case len(bytes.TrimSpace(line)) > 0:
			m, wrong := jsonrpc.DecodeMessage(withTask(line))
			if wrong == nil {
				c.note(m)
				return m, nil
			}
			c.warn("printed a line that is no message: " + quoteLine(line))
		}
		if err != nil {
			return nil, io.EOF
		}
	}
}

// line reads a line. For a line that is too long it returns its ends.
func (c *stdio) line() (line []byte, cut *ends, err error) {
	for {
		part, err := c.in.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case cut != nil:
			cut.add(part)
		case len(line)+len(part) > maxFrame:
			cut = &ends{head: line[:min(len(line), maxEnd)]}
			cut.add(line)
			cut.add(part)
			line = nil
		default:
			line = append(line, part...)
		}
		if !more {
			return line, cut, err
		}
	}
}

// maxEnd bounds the ends of a line that is too long.
const maxEnd = 1 << 10

// ends holds the beginning and the end of a line.
type ends struct{ head, tail []byte }

func (e *ends) add(part []byte) {
	e.tail = append(e.tail, part[max(0, len(part)-maxEnd):]...)
	e.tail = bytes.Clone(e.tail[max(0, len(e.tail)-maxEnd):])
}

// Servers write the id of an answer before its result, or as the last member.
var (
	idAtHead = regexp.MustCompile(`^\s*\{(?:"jsonrpc":\s*"2\.0",\s*)?"id":\s*(\d+)\s*,`)
	idAtTail = regexp.MustCompile(`"id":\s*(\d+)\s*\}\s*$`)
)

// tooLong fails the call that a line answers, or all calls in progress if that is
// unknown.
func (c *stdio) tooLong(e *ends) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]jsonrpc.ID, 0, len(c.pending))
	for id := range c.pending {
		ids = append(ids, id)
	}
	found := idAtHead.FindSubmatch(e.head)
	if found == nil {
		found = idAtTail.FindSubmatch(e.tail)
	}
	if found != nil {
		if n, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil {
			if id, err := jsonrpc.MakeID(float64(n)); err == nil && c.pending[id] {
				ids = []jsonrpc.ID{id}
			}
		}
	}
	for _, id := range ids {
		delete(c.pending, id)
		c.failed = append(c.failed, &jsonrpc.Response{ID: id, Error: errTooLong})
	}
	c.warn(fmt.Sprintf("sent a message of more than %d MiB, which is not read", maxFrame>>20))
}

var errTooLong = fmt.Errorf("the answer has more than %d MiB and was not read", maxFrame>>20)

func (c *stdio) nextFailed() jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failed) == 0 {
		return nil
	}
	m := c.failed[0]
	c.failed = c.failed[1:]
	return m
}

// note handles a message that the server sent.
func (c *stdio) note(m jsonrpc.Message) {
	switch m := m.(type) {
	case *jsonrpc.Response:
		c.mu.Lock()
		delete(c.pending, m.ID)
		c.mu.Unlock()
	case *jsonrpc.Request:
		if m.Method == "notifications/tools/list_changed" {
			c.changed()
		}
	}
}

// Write implements [sdk.Connection].
func (c *stdio) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		c.mu.Lock()
		c.pending[r.ID] = true
		c.mu.Unlock()
	}
	n, err := c.program.In.Write(append(text, '\n'))
	if n > 0 {
		noteSent(ctx)
	}
	return err
}

// quoteLine returns a server's line for people.
func quoteLine(line []byte) string {
	text := clean(strings.ToValidUTF8(string(line[:min(len(line), 4*maxShownLine)]), "\uFFFD"), maxShownLine)
	return strconv.Quote(text)
}

// maxStartLines bounds the lines in an error of a start, maxErrs what is kept of a
// program's stderr.
const (
	maxStartLines = 20
	maxErrs       = 64 << 10
)

// lines keeps the end of a program's stderr, and passes its lines on.
type lines struct {
	log  func(line string)
	mu   sync.Mutex
	text []byte
	part []byte
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.text = append(l.text, p...)
	l.text = append(l.text[:0:0], l.text[max(0, len(l.text)-maxErrs):]...)
	l.part = append(l.part, p...)
	var whole []string
	for {
		line, rest, found := bytes.Cut(l.part, []byte("\n"))
		if !found && len(l.part) < maxErrs {
			break
		}
		whole = append(whole, string(line))
		l.part = append([]byte(nil), rest...)
	}
	l.mu.Unlock()
	for _, line := range whole {
		l.log(line)
	}
	return len(p), nil
}

// last returns the last n lines.
func (l *lines) last(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for line := range strings.Lines(strings.ToValidUTF8(string(l.text), "\uFFFD")) {
		if line = strings.TrimSpace(clean(line, maxDescription)); line != "" {
			all = append(all, line)
		}
	}
	return all[max(0, len(all)-n):]
}
