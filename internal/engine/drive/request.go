package drive

import (
	"fmt"

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
