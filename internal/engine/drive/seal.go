package drive

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/result"
)

// maxNesting bounds the nesting of an event, so that data which contains it, such as a
// list of events, can still be parsed.
const maxNesting = 9_000

// Seal converts an event to its stored form before anything follows from it, and
// returns the bytes: the machine, the store and the subscribers all get the same event.
func (r *Recorder) Seal(e *event.Event) ([]byte, error) { return r.seal(nil, e) }

// Check is [Recorder.Seal] for a store that keeps values: it returns the size of the
// bytes.
func (r *Recorder) Check(e *event.Event) (size int, err error) {
	b := scratch.Get().(*[]byte)
	defer scratch.Put(b)
	body, err := r.seal((*b)[:0], e)
	if cap(body) <= maxScratch {
		*b = body[:0]
	}
	return len(body), err
}

// maxScratch bounds the buffer that is kept for the next event.
const maxScratch = 1 << 20

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// seal appends the bytes to b, which is empty.
func (r *Recorder) seal(b []byte, e *event.Event) ([]byte, error) {
	body, err := event.Append(b, e)
	if err != nil {
		return nil, err
	}
	if nestedDeeper(body, maxNesting) {
		return nil, fmt.Errorf("%s is nested deeper than %d levels, so its journal could not be read", e.Type(), maxNesting)
	}
	if err := asStored(e, body); err != nil {
		return nil, err
	}
	return r.redact(e, body)
}

// redact removes secrets from an event.
func (r *Recorder) redact(e *event.Event, body []byte) ([]byte, error) {
	if r.Secrets.none() {
		return body, nil
	}
	if answer, ok := e.Data.(event.ModelResponse); ok {
		if parts, found := r.Secrets.calls(answer.Parts); found {
			answer.Parts = parts
			e.Data = answer
		}
	}
	body, found := r.Secrets.JSON(body)
	if !found {
		return body, nil
	}
	clean, err := event.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("%s holds a secret that cannot be removed from it: %w", e.Type(), err)
	}
	if clean.Data, err = reattach(clean.Data, e.Data); err != nil {
		return nil, fmt.Errorf("take a secret out of %s: %w", e.Type(), err)
	}
	*e = *clean
	return body, nil
}

// asStored converts the texts of an event to their stored form. JSON cannot contain
// invalid UTF-8, and a machine with such a text would differ from the one that a resume
// folds from the journal.
func asStored(e *event.Event, body []byte) error {
	if !bytes.Contains(body, []byte(`\ufffd`)) { // such a byte is encoded as this escape, a literal U+FFFD is not
		return nil
	}
	read, err := event.Decode(body)
	if err != nil {
		return fmt.Errorf("read back %s, which holds bytes that are not UTF-8: %w", e.Type(), err)
	}
	if read.Data, err = reattach(read.Data, e.Data); err != nil {
		return fmt.Errorf("read back %s, which holds bytes that are not UTF-8: %w", e.Type(), err)
	}
	*e = *read
	return nil
}

// reattach adds what the stored form omits to an event that was read back: the contents
// of attachments, of which it has the digests, and the arguments of calls.
func reattach(data, original event.Data) (event.Data, error) {
	if answer, ok := data.(event.ModelResponse); ok {
		for i, p := range original.(event.ModelResponse).Parts {
			call, ok := answer.Parts[i].(llm.ToolCall)
			if before, was := p.(llm.ToolCall); ok && was {
				call.Args, call.ArgsText = before.Args, before.ArgsText
				answer.Parts[i] = call
			}
		}
	}
	contents := map[string][]byte{}
	if _, err := event.MapMedia(original, func(m llm.Media) (llm.Media, error) {
		contents[m.Blob] = m.Data
		return m, nil
	}); err != nil {
		return nil, err
	}
	return attached(data, func(digest string) ([]byte, error) { return contents[digest], nil })
}

// Recorder converts results to the form in which a run's journal keeps them. A
// driver has one for each run. It is safe for concurrent use once it is
// equipped.
type Recorder struct {
	Secrets Secrets
	Blobs   *Blobs
	// readsOn reports that the run has the tool that reads omitted parts.
	readsOn bool
}

// NewRecorder returns a recorder for a run in a store. Until it is equipped it knows no
// secrets.
func NewRecorder(store journal.Store) *Recorder {
	r := &Recorder{Blobs: NewBlobs(store)}
	r.Blobs.clean = func(m llm.Media) llm.Media { return r.Secrets.Media(m) }
	return r
}

// Equip sets the run's tools, and the secrets to remove from what the run
// journals.
func (r *Recorder) Equip(tools *tool.Set, secrets ...*secret.Redactor) {
	r.Secrets = secrets
	_, r.readsOn = tools.Lookup(result.Name)
}
