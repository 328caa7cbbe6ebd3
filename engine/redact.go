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

// reattach gives an event that was read back the attachments of the original,
// of which the stored form has the digests alone.
func reattach(data, original event.Data) (event.Data, error) {
	contents := map[string][]byte{}
	if _, err := event.MapMedia(original, func(m llm.Media) (llm.Media, error) {
		contents[m.Blob] = m.Data
		return m, nil
	}); err != nil {
		return nil, err
	}
	return attach(data, func(digest string) ([]byte, error) { return contents[digest], nil })
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
