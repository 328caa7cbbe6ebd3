// Package programlog stores the last output of the programs of a run, such as its MCP
// servers, in a file without secrets.
package programlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/tool"
)

// maxKept bounds the file of a run that has ended. While the run goes on, the file has
// at most twice that size.
const maxKept = 64 << 10

// Log is the log of one run. Output is held in memory until the run has an id. A Log is
// safe for concurrent use.
type Log struct {
	redact *secret.Redactor

	mu       sync.Mutex
	programs map[string]*printed
	text     []byte
	// path is the path of the file once the run has an id; file is open after the first
	// line.
	path string
	file *os.File
	// dropped reports that nothing more is written.
	dropped bool
}

// printed is the output of a program that is not yet a whole line.
type printed struct {
	// redacted holds back text that may be the beginning of a secret.
	redacted interface {
		Write(text string) string
		End() string
	}
	part string
}

// New returns the log of a run with the given secrets.
func New(secrets []secret.Secret) *Log {
	return &Log{redact: secret.NewRedactor(secrets...), programs: map[string]*printed{}}
}

// Line adds a line of output of a program.
func (l *Log) Line(program, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.programs[program]
	if p == nil {
		p = &printed{redacted: secret.NewStream(l.redact)}
		l.programs[program] = p
	}
	l.take(program, p, p.redacted.Write(strings.ToValidUTF8(text, "\uFFFD")+"\n"))
}

// take writes the complete lines of a redacted text.
func (l *Log) take(program string, p *printed, text string) {
	text = p.part + text
	end := strings.LastIndexByte(text, '\n') + 1
	p.part = text[end:]
	for each := range strings.Lines(text[:end]) {
		shown, _ := tool.Screen(strings.TrimSuffix(each, "\n"))
		l.write(program + ": " + shown + "\n")
	}
}

// write adds a line. If writing fails, the log is dropped and the run continues.
func (l *Log) write(line string) {
	if l.dropped {
		return
	}
	l.text = append(l.text, line...)
	var err error
	switch {
	case l.file != nil:
		_, err = l.file.WriteString(line)
	case l.path != "":
		err = l.create()
	}
	if l.dropped = err != nil; !l.dropped && len(l.text) > 2*maxKept {
		l.cut()
	}
}

// create opens the file and appends the pending text after that of an earlier process.
func (l *Log) create() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	before, err := io.ReadAll(file)
	if err == nil {
		_, err = file.Write(l.text)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.text = file, append(before, l.text...)
	return nil
}

// cut removes all but the last lines.
func (l *Log) cut() {
	if len(l.text) <= maxKept {
		return
	}
	tail := l.text[len(l.text)-maxKept:]
	if l.text[len(l.text)-maxKept-1] != '\n' {
		tail = tail[bytes.IndexByte(tail, '\n')+1:]
	}
	l.text = slices.Clone(tail)
	if l.file == nil {
		return
	}
	err := l.file.Truncate(0)
	if err == nil {
		_, err = l.file.Write(l.text)
	}
	l.dropped = err != nil
}

// Open sets the path of the log's file; an empty path drops the log.
func (l *Log) Open(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.path, l.dropped = path, path == ""
	if len(l.text) > 0 && !l.dropped {
		l.dropped = l.create() != nil
	}
}

// Close writes the pending text and closes the file.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for program, p := range l.programs {
		if l.take(program, p, p.redacted.End()); p.part != "" {
			l.take(program, p, "\n")
		}
	}
	l.dropped = true
	if l.file != nil {
		l.cut()
		_ = l.file.Close()
	}
}
