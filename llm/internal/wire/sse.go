package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxEventBytes bounds one event, so that a stream without line ends cannot exhaust the
// process's memory.
const maxEventBytes = 64 << 20

// ErrEventTooLarge is returned for an event above maxEventBytes.
var ErrEventTooLarge = errors.New("wire: server-sent event is too large")

// EventReader reads server-sent events (WHATWG HTML, 9.2) regardless of how the bytes
// are split: LF, CR or CRLF line ends, a leading byte-order mark, comments, and data
// over several lines.
type EventReader struct {
	r     io.Reader
	buf   []byte
	start int
	end   int
	err   error
	begun bool
	// skipLF is set after a CR: a following LF belongs to it.
	skipLF bool
	name   []byte
	data   []byte
	hasAny bool
	// fields reports that there was a field of a stream, or a comment; events that an
	// event had data.
	fields, events bool
	// silence is reset by every event with content; nil for none.
	silence *stall
}

// NewEventReader returns a reader of r, which must not be read elsewhere.
func NewEventReader(r io.Reader) *EventReader {
	return &EventReader{r: r, buf: make([]byte, bufferSize)}
}

// bufferSize is the initial size of a reader's buffer, which grows with a long event.
const bufferSize = 16 << 10

// readers holds readers for reuse. A buffer for each stream would be most of what a
// short answer allocates.
var readers = sync.Pool{New: func() any { return NewEventReader(nil) }}

// readEvents calls read with a reader of the stream; read must not keep the reader.
// spoken reports that the data was a stream, and silent that none of its events had
// data, because comments may have kept the connection open.
func readEvents(r io.Reader, silence *stall, read func(*EventReader) error) (spoken, silent bool, err error) {
	e := readers.Get().(*EventReader)
	silence.begin()
	*e = EventReader{r: r, buf: e.buf, name: e.name, data: e.data, silence: silence}
	err = read(e)
	spoken = e.fields || beginsField(e.withoutMark(e.buf[e.start:e.end]))
	silent = !e.events && len(e.data) == 0
	e.r, e.silence = nil, nil
	if len(e.buf) == bufferSize && cap(e.data) <= bufferSize {
		readers.Put(e)
	}
	return spoken, silent, err
}

// beginsField reports whether a truncated line may be a line of a stream.
func beginsField(cut []byte) bool {
	name, _, named := bytes.Cut(cut, []byte{':'})
	if named || len(cut) == 0 {
		return named && isField(name)
	}
	for _, field := range [...]string{"data", "event", "id", "retry"} {
		if bytes.HasPrefix([]byte(field), cut) {
			return true
		}
	}
	return false
}

// isField reports whether a line with this name belongs to a stream; the name of a
// comment is empty.
func isField(name []byte) bool {
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return true
	}
	return false
}

// Next returns the name and data of the next event. Both are valid until the next call.
// It skips events without data, which only keep the connection open. For an event that
// the end of the stream truncates it returns io.EOF.
func (e *EventReader) Next() (name, data []byte, err error) {
	e.name, e.data, e.hasAny = e.name[:0], e.data[:0], false
	for {
		line, err := e.line()
		if errors.Is(err, io.EOF) && e.endsComplete() {
			e.noteData()
			return e.name, e.data, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if len(line) == 0 {
			if len(bytes.TrimSpace(e.data)) > 0 {
				e.noteData()
				return e.name, e.data, nil
			}
			e.name, e.data, e.hasAny = e.name[:0], e.data[:0], false
			continue
		}
		e.field(line)
		if len(e.data) > maxEventBytes {
			return nil, nil, ErrEventTooLarge
		}
	}
}

// noteData records an event with data. A ping only keeps the connection open.
func (e *EventReader) noteData() {
	e.events = true
	if e.silence != nil && !isPing(e.name, e.data) {
		e.silence.reset()
	}
}

// isPing reports whether an event is a ping that a service sends instead of a comment,
// by its name or, if a proxy dropped the name, by its type.
func isPing(name, data []byte) bool {
	for _, ping := range [...]string{"ping", "keepalive"} {
		if string(name) == ping {
			return true
		}
		kind, typed := bytes.CutPrefix(data, []byte(`{"type":`))
		if typed && bytes.HasPrefix(bytes.TrimLeft(kind, " "), []byte(`"`+ping+`"`)) {
			return true
		}
	}
	return false
}

// endsComplete reports whether a stream ends with an event that lacks only the blank
// line after it. Some gateways close the connection without the line, and the end of
// the answer would be lost with the event (openai/openai-node#2725).
func (e *EventReader) endsComplete() bool {
	rest := e.withoutMark(e.buf[e.start:e.end])
	if e.start = e.end - len(rest); bytes.HasPrefix(rest, []byte("data:")) {
		e.field(rest)
		e.start = e.end
	}
	data := bytes.TrimSpace(e.data)
	return e.hasAny && (bytes.HasPrefix(data, []byte{'{'}) && Valid(data) || string(data) == "[DONE]")
}

func (e *EventReader) field(line []byte) {
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	e.fields = e.fields || isField(field)
	switch string(field) {
	case "data":
		if e.hasAny {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.hasAny = true
	case "event":
		e.name = append(e.name[:0], value...)
	}
}

// line returns the next line without its end.
func (e *EventReader) line() ([]byte, error) {
	for scanned := 0; ; {
		chunk := e.buf[e.start:e.end]
		if e.skipLF && len(chunk) > 0 {
			e.skipLF = false
			if chunk[0] == '\n' {
				e.start++
				continue
			}
		}
		if i := indexLineEnd(chunk[scanned:]); i >= 0 {
			line := chunk[:scanned+i]
			e.skipLF = chunk[scanned+i] == '\r'
			e.start += scanned + i + 1
			return e.withoutMark(line), nil
		}
		scanned = len(chunk)
		if err := e.fill(); err != nil {
			return nil, err
		}
	}
}

// indexLineEnd examines a part of the buffer at a time: if lines end with CR alone, the
// next LF may be many lines away.
func indexLineEnd(b []byte) int {
	for from := 0; from < len(b); from += bufferSize {
		if i := firstLineEnd(b[from:min(len(b), from+bufferSize)]); i >= 0 {
			return from + i
		}
	}
	return -1
}

func firstLineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

func (e *EventReader) withoutMark(line []byte) []byte {
	if e.begun {
		return line
	}
	e.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// fill reads more bytes into the buffer.
func (e *EventReader) fill() error {
	if e.err != nil {
		return e.err
	}
	switch {
	case e.start == e.end:
		e.start, e.end = 0, 0
	case e.start > 0 && e.end == len(e.buf):
		e.end = copy(e.buf, e.buf[e.start:e.end])
		e.start = 0
	}
	if e.end == len(e.buf) {
		if len(e.buf) > maxEventBytes {
			return ErrEventTooLarge
		}
		e.buf = append(e.buf, make([]byte, len(e.buf))...)
	}
	n, err := e.r.Read(e.buf[e.end:])
	e.end += n
	if err != nil && n > 0 {
		e.err = err
		return nil
	}
	if err == nil && n == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("wire: read event stream: %w", err)
	}
	return err
}
