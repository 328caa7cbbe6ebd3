package secret

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Redactor removes secret values from data before it is stored or shown. A nil Redactor
// knows none. It is safe for concurrent use.
type Redactor struct {
	table atomic.Pointer[table]
	// fixed are the secrets that it was made with, and learned those that came later,
	// the oldest first.
	fixed []Secret

	mu      sync.Mutex
	learned []Secret
}

// maxLearned bounds what a redactor learns. The values that it forgets are tokens that
// were replaced many times since.
const maxLearned = 64

// NewRedactor returns a redactor of secrets; nil if there are none.
func NewRedactor(secrets ...Secret) *Redactor {
	if secrets = longEnough(secrets); len(secrets) == 0 {
		return nil
	}
	return NewLearner(secrets...)
}

// NewLearner returns a redactor of secrets that may learn more. It is never nil.
func NewLearner(secrets ...Secret) *Redactor {
	r := &Redactor{fixed: longEnough(secrets)}
	r.table.Store(tableOf(r.fixed))
	return r
}

func longEnough(secrets []Secret) []Secret {
	return slices.DeleteFunc(slices.Clone(secrets), func(s Secret) bool { return len(s.Value) < MinLength })
}

// Learn makes the redactor remove further values from now on.
func (r *Redactor) Learn(secrets ...Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := len(r.learned)
	for _, s := range longEnough(secrets) {
		same := func(other Secret) bool { return other.Value == s.Value }
		if !slices.ContainsFunc(r.fixed, same) && !slices.ContainsFunc(r.learned, same) {
			r.learned = append(r.learned, s)
		}
	}
	if len(r.learned) == known {
		return
	}
	r.learned = slices.Clone(r.learned[max(0, len(r.learned)-maxLearned):])
	r.table.Store(tableOf(slices.Concat(r.fixed, r.learned)))
}

func (r *Redactor) known() *table { return r.table.Load() }

// Names returns the names of the values that the redactor was made with, sorted.
func (r *Redactor) Names() []string {
	if r == nil {
		return nil
	}
	names := make([]string, len(r.fixed))
	for i, s := range r.fixed {
		names[i] = s.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Redact replaces the values in a text by references, and reports whether there were
// any. If not, it returns the text itself without allocating.
func (r *Redactor) Redact(text []byte) ([]byte, bool) {
	if r == nil {
		return text, false
	}
	return r.known().redact(text)
}

// RedactString is [Redactor.Redact] for a string.
func (r *Redactor) RedactString(text string) string {
	if r == nil {
		return text
	}
	if out, found := r.Redact([]byte(text)); found {
		return string(out)
	}
	return text
}

// RedactJSON is [Redactor.Redact] for JSON: it changes only the contents of strings, so
// that the result is JSON of the same shape.
func (r *Redactor) RedactJSON(doc []byte) ([]byte, bool) {
	if r == nil {
		return doc, false
	}
	return r.known().redactJSON(doc)
}
