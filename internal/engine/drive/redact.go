package drive

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Secrets are taken out of all that a run journals: those of the run, then those of
// the process. A nil one knows none.
type Secrets []*secret.Redactor

// JSON takes secrets out of a document, and reports whether there were any.
func (s Secrets) JSON(doc []byte) (clean []byte, found bool) {
	for _, r := range s {
		var here bool
		doc, here = r.RedactJSON(doc)
		found = found || here
	}
	return doc, found
}

// Text takes secrets out of a text before it is cut or kept apart from its event.
func (s Secrets) Text(text string) string {
	for _, r := range s {
		text = r.RedactString(text)
	}
	return text
}

// Media takes secrets out of an attachment.
func (s Secrets) Media(m llm.Media) llm.Media {
	for _, r := range s {
		m.Data, _ = r.Redact(m.Data)
	}
	return m
}

// none reports whether there is nothing to be taken out.
func (s Secrets) none() bool {
	return !slices.ContainsFunc(s, func(r *secret.Redactor) bool { return r != nil })
}

// calls takes secrets out of the arguments of calls, so that they are
// judged as they will run, and reports whether there were any. The stored form of an
// answer leaves them to the tool_call of each.
func (s Secrets) calls(parts event.Answer) (redacted event.Answer, found bool) {
	for i, p := range parts {
		call, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args, inArgs := s.JSON(call.Args)
		if text := s.Text(call.ArgsText); inArgs || text != call.ArgsText {
			call.Args, call.ArgsText = args, text
			parts, found = slices.Clone(parts), true
			parts[i] = call
		}
	}
	return parts, found
}

// RedactCommand takes secrets out of what somebody sends to a run: its text,
// its arguments and its files. The sender's own command stays as it is.
func RedactCommand(c journal.Command, secrets *secret.Redactor) journal.Command {
	c.Text = secrets.RedactString(c.Text)
	c.Args, _ = secrets.RedactJSON(c.Args)
	c.Media = slices.Clone(c.Media)
	for i := range c.Media {
		c.Media[i].Blob = ""
		c.Media[i].Name = secrets.RedactString(c.Media[i].Name)
		c.Media[i].URL = secrets.RedactString(c.Media[i].URL)
		c.Media[i].Data, _ = secrets.Redact(c.Media[i].Data)
	}
	return c
}
