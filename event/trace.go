package event

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Trace identifies the trace of a run, in the terms of W3C Trace Context. It is in
// the run's first event, so that a process that resumes the run continues the
// trace.
type Trace struct {
	// ID is the id of the trace, 32 hexadecimal digits.
	ID string `json:"id"`
	// Parent is the parent of the run's span, 16 hexadecimal digits; empty for the
	// first span of a trace.
	Parent string `json:"parent,omitempty"`
}

// NewTrace returns the default trace of a tree of runs, derived from its root.
func NewTrace(root string) Trace { return Trace{ID: traceSum(16, "trace", root)} }

// ParseTraceparent parses a traceparent header, and reports whether it is valid.
func ParseTraceparent(header string) (Trace, bool) {
	part := strings.Split(header, "-")
	if len(part) < 4 || len(part) > 4 && part[0] == "00" || !traceHex(part[0], 1) || part[0] == "ff" || !traceHex(part[3], 1) {
		return Trace{}, false
	}
	if zero := strings.Repeat("0", 32); !traceHex(part[1], 16) || !traceHex(part[2], 8) || part[1] == zero || part[2] == zero[:16] {
		return Trace{}, false
	}
	return Trace{ID: part[1], Parent: part[2]}, true
}

func traceHex(s string, size int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == size && s == strings.ToLower(s)
}

// Span returns the id of the span for something that a run did, or for the run itself
// if what is empty. It is derived from the names, so that processes need not exchange
// ids.
func (t Trace) Span(run, what string) string { return traceSum(8, t.ID, run, what) }

// Below returns the trace of a child run, for one of the parent's calls if it answers
// one.
func (t Trace) Below(run, callID string) Trace {
	if t.ID == "" {
		return Trace{}
	}
	return Trace{ID: t.ID, Parent: t.Span(run, callID)}
}

func traceSum(size int, names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:size])
}
