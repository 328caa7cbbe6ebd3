package drive

import (
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
)

// Secrets are removed from everything that a run journals: those of the run,
// then those of the process. A nil element has none.
type Secrets []*secret.Redactor

// JSON removes the secrets from a document, and reports whether there were any.
func (s Secrets) JSON(doc []byte) (clean []byte, found bool) {
	for _, r := range s {
		var here bool
		doc, here = r.RedactJSON(doc)
		found = found || here
	}
	return doc, found
}

// Text removes the secrets from a text before it is cut or stored beside its
// event.
func (s Secrets) Text(text string) string {
	for _, r := range s {
		text = r.RedactString(text)
	}
	return text
}

// Media removes the secrets from an attachment.
func (s Secrets) Media(m llm.Media) llm.Media {
	for _, r := range s {
		m.Data, _ = r.Redact(m.Data)
	}
	return m
}

// none reports whether there are no secrets.
func (s Secrets) none() bool {
	return !slices.ContainsFunc(s, func(r *secret.Redactor) bool { return r != nil })
}

// calls removes the secrets from the arguments of calls, so that they are judged
// as they will run, and reports whether there were any. The stored form of an
// answer has no arguments; each tool_call has its own.
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

// RedactCommand removes the secrets from a command to a run: from its text, its
// arguments and its files. It does not change the caller's command.
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
