package drive

import (
	"fmt"

	"github.com/pawlrun/pawl/llm"
)

// Requests makes the requests of a run. Each remembers what it has in common with
// the one before. The zero value is a run's before its first.
type Requests struct {
	memo llm.Memo
	// last is the last conversation that was found to hold all its contents.
	last []*llm.Message
}

// Make gives a request the bytes that a model is sent, and the model's own name. It
// is an error where the conversation lacks what lies beside the journal.
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
	req.Memo = &r.memo // not for the call, which lasts while the driver goes on
	var err error
	req.Encoded, err = enc.Encode(req)
	req.Memo = nil
	return err
}

// complete refuses a conversation in which the content of an attachment is
// still elsewhere: a model must not be asked about a file that it does not get.
// What stands where it stood in a conversation that was complete is not looked
// at again.
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
