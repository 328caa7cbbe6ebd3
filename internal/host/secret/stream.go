package secret

import (
	"slices"
	"unicode/utf8"
)

// Stream redacts a text that arrives in pieces. Its output so far is always a prefix of
// what [Redactor.Redact] returns for the whole text, however it was split: it holds
// back a suffix that may begin a value until more text decides. That is at most the
// length of the longest form less one byte (three more to keep characters whole), plus
// possible line breaks. It is not safe for concurrent use.
type Stream struct {
	stages []stage
}

// stage applies one redactor to the output of the previous one.
type stage struct {
	redactor *Redactor
	held     []byte
}

// NewStream returns a stream that applies the redactors in order; nil if none of them
// knows a value. A nil stream returns every piece unchanged.
func NewStream(redactors ...*Redactor) *Stream {
	s := &Stream{}
	for _, r := range redactors {
		if r != nil {
			s.stages = append(s.stages, stage{redactor: r})
		}
	}
	if len(s.stages) == 0 {
		return nil
	}
	return s
}

// Write takes the next piece and returns what can be shown now. A piece without a
// value, if nothing is held back, is returned itself without allocating.
func (s *Stream) Write(piece string) string {
	if s == nil {
		return piece
	}
	for i := range s.stages {
		piece = s.stages[i].write(piece)
	}
	return piece
}

// End returns what was held back, and resets the stream for another text.
func (s *Stream) End() string {
	if s == nil {
		return ""
	}
	rest := ""
	for i := range s.stages {
		rest = s.stages[i].write(rest) + s.stages[i].end()
	}
	return rest
}

func (s *stage) write(piece string) string {
	had := len(s.held)
	s.held = append(s.held, piece...)
	out, done := s.redactor.known().settled(s.held)
	if out == nil && had == 0 && done == len(piece) {
		s.held = s.held[:0]
		return piece
	}
	shown := string(out)
	if out == nil {
		shown = string(s.held[:done])
	}
	s.held = slices.Delete(s.held, 0, done)
	return shown
}

func (s *stage) end() string {
	out, _ := s.redactor.Redact(s.held)
	s.held = s.held[:0]
	return string(out)
}

// settled redacts the longest prefix of a text that no continuation can change, and
// returns its length. It returns nil if the prefix contains no value.
func (r *table) settled(text []byte) (out []byte, done int) {
	at := 0
	for at < len(text) {
		f, n, open := r.opening(text[at:])
		if open {
			break
		}
		if f == nil {
			at++
			continue
		}
		out = append(append(out, text[done:at]...), f.mark...)
		at += n
		done = at
	}
	for at < len(text) && at > done && !utf8.RuneStart(text[at]) {
		at--
	}
	if out != nil {
		out = append(out, text[done:at]...)
	}
	return out, at
}

// opening returns the form at the beginning of a text and its length there; open
// reports that more text may change that.
func (r *table) opening(text []byte) (f *form, n int, open bool) {
	if len(text) == 1 {
		return nil, 0, r.firsts[text[0]>>6]&(1<<(text[0]&63)) != 0
	}
	key := pair(text[0], text[1])
	if !r.starting(key) {
		return nil, 0, false
	}
	return r.begins(key, text)
}
