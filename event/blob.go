package event

import "github.com/pawlrun/pawl/llm"

// BlobRef refers to content that the journal stores separately, once for each digest.
type BlobRef struct {
	// Digest identifies the content ("sha256-" and hexadecimal digits).
	Digest string `json:"digest"`
	// Untrusted reports that the content came from outside.
	Untrusted bool `json:"untrusted,omitempty"`
	// Private reports that the content must not leave the machine.
	Private bool `json:"private,omitempty"`
}

// Blobs lists the contents that an event refers to, in the order of its fields; the
// same digest may occur more than once.
func Blobs(d Data) []BlobRef {
	var refs []BlobRef
	if x, ok := d.(RunStarted); ok && x.From != nil {
		refs = append(refs, x.From.Blobs...)
	}
	switch x := d.(type) {
	case ToolResult:
		refs = x.appendBlob(refs)
	case ToolAttemptFailed:
		refs = x.Result.appendBlob(refs)
	case CommandFinished:
		if x.Blob != "" {
			refs = append(refs, BlobRef{Digest: x.Blob, Untrusted: x.Untrusted, Private: x.Private})
		}
	}
	// The function changes nothing, so it cannot fail.
	_, _ = MapMedia(d, func(m llm.Media) (llm.Media, error) {
		if m.Blob != "" {
			refs = append(refs, BlobRef{Digest: m.Blob})
		}
		return m, nil
	})
	return refs
}

func (r ToolResult) appendBlob(refs []BlobRef) []BlobRef {
	for _, digest := range []string{r.Blob, r.Raw, r.Structured} {
		if digest != "" {
			refs = append(refs, BlobRef{Digest: digest, Untrusted: r.Untrusted, Private: r.Private})
		}
	}
	return refs
}

// MapMedia returns an event with each image and file replaced by the result of f. If f
// changes no Blob and no Data, it returns the event itself; a changed event shares no
// changed part with the original.
func MapMedia(d Data, f func(llm.Media) (llm.Media, error)) (Data, error) {
	switch x := d.(type) {
	case RunStarted:
		return mapStarted(x, d, f)
	case ModelResponse:
		parts, changed, err := mapParts(llm.Parts(x.Parts), f)
		if err != nil || !changed {
			return d, err
		}
		x.Parts = Answer(parts)
		return x, nil
	case InputReceived:
		return mapIn(d, &x, &x.Media, f)
	case ToolResult:
		return mapIn(d, &x, &x.Media, f)
	case ToolAttemptFailed:
		return mapIn(d, &x, &x.Result.Media, f)
	}
	return d, nil
}

// mapIn maps the media in a copy of a payload, and returns the copy if that changes
// any.
func mapIn[D Data](d Data, copied *D, media *[]llm.Media, f func(llm.Media) (llm.Media, error)) (Data, error) {
	mapped, changed, err := mapMedia(*media, f)
	if err != nil || !changed {
		return d, err
	}
	*media = mapped
	return *copied, nil
}

func mapStarted(x RunStarted, d Data, f func(llm.Media) (llm.Media, error)) (Data, error) {
	input, changed, err := mapMessage(x.Input, f)
	if err != nil {
		return d, err
	}
	x.Input = input
	if x.From == nil {
		if !changed {
			return d, nil
		}
		return x, nil
	}
	from := *x.From
	for i, m := range x.From.History {
		mapped, hit, err := mapMessage(m, f)
		if err != nil {
			return d, err
		}
		if hit && &from.History[0] == &x.From.History[0] {
			from.History = append([]*llm.Message(nil), x.From.History...)
		}
		if hit {
			from.History[i], changed = mapped, true
		}
	}
	if !changed {
		return d, nil
	}
	x.From = &from
	return x, nil
}

func mapMessage(m *llm.Message, f func(llm.Media) (llm.Media, error)) (*llm.Message, bool, error) {
	if m == nil {
		return nil, false, nil
	}
	parts, changed, err := mapParts(m.Parts, f)
	if err != nil || !changed {
		return m, false, err
	}
	mapped := *m
	mapped.Parts = parts
	return &mapped, true, nil
}

func mapParts(parts llm.Parts, f func(llm.Media) (llm.Media, error)) (llm.Parts, bool, error) {
	mapped := parts
	for i, p := range parts {
		replaced, changed, err := mapPart(p, f)
		if err != nil {
			return parts, false, err
		}
		if !changed {
			continue
		}
		if &mapped[0] == &parts[0] {
			mapped = append(llm.Parts(nil), parts...)
		}
		mapped[i] = replaced
	}
	return mapped, len(parts) > 0 && &mapped[0] != &parts[0], nil
}

func mapPart(p llm.Part, f func(llm.Media) (llm.Media, error)) (llm.Part, bool, error) {
	switch x := p.(type) {
	case llm.Media:
		m, err := f(x)
		if err != nil || same(m, x) {
			return p, false, err
		}
		return m, true, nil
	case llm.ToolResult:
		media, changed, err := mapMedia(x.Media, f)
		if err != nil || !changed {
			return p, false, err
		}
		x.Media = media
		return x, true, nil
	}
	return p, false, nil
}

func mapMedia(media []llm.Media, f func(llm.Media) (llm.Media, error)) ([]llm.Media, bool, error) {
	mapped := media
	for i := range media {
		m, err := f(media[i])
		if err != nil {
			return media, false, err
		}
		if same(m, media[i]) {
			continue
		}
		if &mapped[0] == &media[0] {
			mapped = append([]llm.Media(nil), media...)
		}
		mapped[i] = m
	}
	return mapped, len(media) > 0 && &mapped[0] != &media[0], nil
}

func same(a, b llm.Media) bool { return a.Blob == b.Blob && len(a.Data) == len(b.Data) }
