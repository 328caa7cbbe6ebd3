package secret

import (
	"slices"
	"unicode/utf8"
)

// Stream takes values out of a text that comes in pieces. What it has given so
// far is always the beginning of what [Redactor.Redact] makes of the whole text,
// however that was split: an end that a value may begin with is held back until
// it is known whether it does, which is at most the length of the longest form
// but one byte (three more where that would tear a character), with what stands
// between the lines that it is broken into. It is not safe for
// concurrent use.
type Stream struct {
	stages []stage
}

// stage is one redactor's part of the work, on what the one before it gives.
type stage struct {
	redactor *Redactor
	held     []byte
}

// NewStream returns a stream of what each redactor in its turn leaves of a
// text; nil when none of them knows a value. A nil stream gives every piece as
// it is.
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

// Write takes the next piece and returns what can be shown now. A piece in
// which nothing is found and of which nothing is held back is returned itself,
// and costs no allocation.
func (s *Stream) Write(piece string) string {
	if s == nil {
		return piece
	}
	for i := range s.stages {
		piece = s.stages[i].write(piece)
	}
	return piece
}

// End returns what was held back, and makes the stream ready for another text.
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
	out, done := s.redactor.settled(s.held)
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

// settled redacts as much of the beginning of a text as no continuation can
// change, and says how much that is. It returns nil when that has no value in it.
func (r *Redactor) settled(text []byte) (out []byte, done int) {
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

// opening says which form a text begins with, and how much of it that takes up;
// open says that more of the text may make it another one.
func (r *Redactor) opening(text []byte) (f *form, n int, open bool) {
	if len(text) == 1 {
		return nil, 0, r.firsts[text[0]>>6]&(1<<(text[0]&63)) != 0
	}
	key := pair(text[0], text[1])
	if !r.starting(key) {
		return nil, 0, false
	}
	return r.begins(key, text)
}
