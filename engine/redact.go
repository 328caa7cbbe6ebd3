package engine

import (
	"fmt"
	"slices"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/secret"
)

// redact takes secrets out of an event before anything follows from it: what
// the machine applies, the store keeps and subscribers see is the same.
func (d *driver) redact(s *staged) error {
	if d.env.Secrets == nil && d.engine.opts.Secrets == nil {
		return nil
	}
	if answer, ok := s.event.Data.(event.ModelResponse); ok {
		if parts, found := d.redactCalls(answer.Parts); found {
			answer.Parts = parts
			s.event.Data = answer
		}
	}
	body, found := d.withoutSecrets(s.body)
	if !found {
		return nil
	}
	e, err := event.Decode(body)
	if err != nil {
		return fmt.Errorf("%s holds a secret that cannot be taken out of it: %w", s.event.Type(), err)
	}
	if e.Data, err = reattach(e.Data, s.event.Data); err != nil {
		return fmt.Errorf("take a secret out of %s: %w", s.event.Type(), err)
	}
	s.event, s.body = *e, body
	return nil
}

// redactCalls takes secrets out of the arguments of calls, so that they are
// judged as they will run, and says whether there were any. The stored form of an
// answer leaves them to the tool_call of each.
func (d *driver) redactCalls(parts event.Answer) (redacted event.Answer, found bool) {
	for i, p := range parts {
		call, ok := p.(llm.ToolCall)
		if !ok {
			continue
		}
		args, inArgs := d.withoutSecrets(call.Args)
		if text := d.redactText(call.ArgsText); inArgs || text != call.ArgsText {
			call.Args, call.ArgsText = args, text
			parts, found = slices.Clone(parts), true
			parts[i] = call
		}
	}
	return parts, found
}

// reattach gives an event that was read back what the stored form of the
// original leaves out: the contents of attachments, of which it has the digests,
// and the arguments of calls.
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

func (d *driver) withoutSecrets(doc []byte) ([]byte, bool) {
	doc, ofRun := d.env.Secrets.RedactJSON(doc)
	doc, ofProcess := d.engine.opts.Secrets.RedactJSON(doc)
	return doc, ofRun || ofProcess
}

// redactText takes secrets out of a text before it is cut or kept apart from
// its event.
func (d *driver) redactText(text string) string {
	return d.engine.opts.Secrets.RedactString(d.env.Secrets.RedactString(text))
}

// redactCommand takes secrets out of what somebody sends to a run: its text,
// its arguments and its files. The sender's own command stays as it is.
func redactCommand(c journal.Command, secrets *secret.Redactor) journal.Command {
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

// redactMedia takes secrets out of an attachment.
func (d *driver) redactMedia(m llm.Media) llm.Media {
	data, _ := d.env.Secrets.Redact(m.Data)
	m.Data, _ = d.engine.opts.Secrets.Redact(data)
	return m
}
