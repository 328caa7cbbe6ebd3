package drive

import (
	"bytes"
	"fmt"

	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/llm"
)

// Requests builds the requests of a run. Each reuses the unchanged parts of the
// previous one. The zero value is for a run without requests.
type Requests struct {
	memo llm.Memo
	// last is the last conversation that was found complete.
	last []*llm.Message
}

// Make encodes a request for a model, and sets the model's own name. It returns an
// error if an attachment's content is missing.
func (r *Requests) Make(req *llm.Request, model llm.Model, name string) error {
	if err := complete(req.Messages, r.last); err != nil {
		return err
	}
	r.last = req.Messages
	req.Model = name
	enc, ok := model.(llm.Encoder)
	if !ok {
		return nil
	}
	req.Memo = &r.memo // not during the call, because the driver continues meanwhile
	var err error
	req.Encoded, err = enc.Encode(req)
	req.Memo = nil
	return err
}

// complete returns an error if the content of an attachment is missing, because a model
// must not be asked about a file that it does not get. It does not check again the
// messages that a complete conversation began with.
func complete(messages, before []*llm.Message) error {
	for i, m := range messages {
		if i < len(before) && m == before[i] {
			continue
		}
		for f := range m.Parts.Media() {
			if f.Blob != "" && len(f.Data) == 0 {
				return hollow(f)
			}
		}
	}
	return nil
}

func hollow(m llm.Media) error {
	return &llm.Error{
		Class:   llm.ClassInvalid,
		Message: fmt.Sprintf("the content of the attachment %q (%s) was not read from the journal", m.Name, m.Blob),
	}
}

// Carried returns the images and files of a result that later requests can contain:
// each of them repeats them, so a file that no provider accepts would make them all
// fail. left is a line about the others for the model.
func Carried(media []llm.Media) (kept []llm.Media, left string) {
	var sizes attach.Sizes
	for i := range media {
		m := &media[i]
		if blank(m) || sizes.Add(m) != nil {
			continue
		}
		kept = append(kept, *m)
	}
	n := len(media) - len(kept)
	if n == 0 {
		return kept, ""
	}
	were := "were"
	if n == 1 {
		were = "was"
	}
	return kept, fmt.Sprintf("[%d of the %d images and files of this result %s left out: one result may bring %d, of at most %d MiB each (%d MiB for a text) and %d MiB together]",
		n, len(media), were, attach.MaxFiles, attach.MaxFile>>20, attach.MaxText>>20, attach.MaxAll>>20)
}

// blank reports whether an image or a file has no content to send.
func blank(m *llm.Media) bool { return len(m.Data) == 0 && m.URL == "" }

// Sendable rejects the images and files of a message that no request can contain.
func Sendable(media []llm.Media) error {
	var sizes attach.Sizes
	for i := range media {
		m := &media[i]
		if blank(m) {
			return fmt.Errorf("the attachment %q has no content", m.Name)
		}
		if err := sizes.Add(m); err != nil {
			return fmt.Errorf("the attachment %q %w", m.Name, err)
		}
	}
	return nil
}

// nestedDeeper reports whether a valid JSON text has more levels than most.
func nestedDeeper(text []byte, most int) bool {
	if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) <= most {
		return false // the usual case
	}
	depth := 0
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// MaxNesting is how deep the JSON of a call or an answer may be nested. The
// journal's readers accept 10,000 levels, some of which the event itself takes
// up; no tool takes more than 256.
const MaxNesting = 1000

// NestedTooDeep reports whether a valid JSON text is nested deeper than [MaxNesting].
func NestedTooDeep(text []byte) bool { return nestedDeeper(text, MaxNesting) }
