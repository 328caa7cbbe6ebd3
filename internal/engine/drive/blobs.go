package drive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/tool"
)

// maxInline is how many bytes of an image or a file an event itself contains.
const maxInline = 32 << 10

// Blobs are the contents that a run's journal refers to. A reference and its
// content are written by the same append, so that no crash leaves one without
// the other. It is safe for concurrent use.
type Blobs struct {
	store journal.Store
	// clean removes secrets from an attachment; nil removes nothing.
	clean func(llm.Media) llm.Media

	mu sync.Mutex
	// known holds what the run's events refer to.
	known map[string]event.BlobRef
	// fresh holds content that no batch contained yet.
	fresh map[string][]byte
}

// NewBlobs returns the contents of a run in a store.
func NewBlobs(store journal.Store) *Blobs { return &Blobs{store: store} }

// Keep stores content with the batch of the event that refers to it, and returns its
// digest. The content must not be changed afterwards.
func (b *Blobs) Keep(content []byte) string {
	digest := journal.Digest(content)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.known[digest]; ok {
		return digest
	}
	if b.fresh == nil {
		b.fresh = map[string][]byte{}
	}
	b.fresh[digest] = content
	return digest
}

// Note records what an event of the run refers to.
func (b *Blobs) Note(data event.Data) {
	refs := event.Blobs(data)
	if len(refs) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = map[string]event.BlobRef{}
	}
	for _, r := range refs {
		b.known[r.Digest] = merged(b.known[r.Digest], r)
	}
}

// merged merges two references to the same content.
func merged(a, b event.BlobRef) event.BlobRef {
	return event.BlobRef{Digest: b.Digest, Untrusted: a.Untrusted || b.Untrusted, Private: a.Private || b.Private}
}

// Take returns the contents that staged events refer to and that the store does not
// have for this run.
func (b *Blobs) Take(events iter.Seq[event.Data]) []journal.Blob {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fresh) == 0 {
		return nil
	}
	var out []journal.Blob
	for data := range events {
		for _, r := range event.Blobs(data) {
			if content, ok := b.fresh[r.Digest]; ok {
				out = append(out, journal.Blob{Digest: r.Digest, Bytes: content})
				delete(b.fresh, r.Digest)
			}
		}
	}
	return out
}

var _ tool.Results = (*Blobs)(nil)

// Read returns content that this run's journal refers to. Content of other runs is out
// of reach, even by its digest.
func (b *Blobs) Read(ctx context.Context, handle string) (tool.Stored, error) {
	b.mu.Lock()
	ref, ok := b.known[handle]
	b.mu.Unlock()
	if !ok {
		return tool.Stored{}, &tool.Error{
			Type: event.ErrorNotFound, Message: fmt.Sprintf("no result of this run has the handle %.100q", handle),
		}
	}
	content, err := b.Load(ctx, handle)
	if err != nil {
		return tool.Stored{}, &tool.Error{Type: event.ErrorTool, Message: err.Error(), Err: err}
	}
	return tool.Stored{Content: content, Untrusted: ref.Untrusted, Private: ref.Private}, nil
}

// Load reads content from the store and verifies its digest.
func (b *Blobs) Load(ctx context.Context, digest string) ([]byte, error) {
	content, err := b.store.Blob(ctx, digest)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, fmt.Errorf("the stored content %s is missing from the journal: %w", digest, err)
	case err != nil:
		return nil, fmt.Errorf("read the stored content %s: %w", digest, err)
	case !(journal.Blob{Digest: digest, Bytes: content}).Intact():
		return nil, fmt.Errorf("the stored content %s was altered: %w", digest, journal.ErrCorrupt)
	}
	return content, nil
}

// Detach removes large images and files of an event from its stored form. The author of
// an event cannot choose what it refers to, because that could be the content of
// another run.
func (b *Blobs) Detach(data event.Data) event.Data {
	detached, _ := event.MapMedia(data, func(m llm.Media) (llm.Media, error) {
		if b.clean != nil {
			m = b.clean(m)
		}
		m.Blob = ""
		if len(m.Data) > maxInline {
			m.Blob = b.Keep(m.Data)
		}
		return m, nil
	})
	return detached
}

// Attach is the inverse of Detach, for a stored event.
func (b *Blobs) Attach(ctx context.Context, data event.Data) (event.Data, error) {
	return attached(data, func(digest string) ([]byte, error) { return b.Load(ctx, digest) })
}

func attached(data event.Data, content func(digest string) ([]byte, error)) (event.Data, error) {
	return event.MapMedia(data, func(m llm.Media) (llm.Media, error) {
		if m.Blob == "" || len(m.Data) > 0 {
			return m, nil
		}
		var err error
		if m.Data, err = content(m.Blob); err != nil {
			return m, fmt.Errorf("attachment %q: %w", m.Name, err)
		}
		return m, nil
	})
}

// Begin prepares the first event of a run for storing: contents that the run inherits
// from an ended one are named again, so that they outlive it, and large attachments are
// detached.
func (b *Blobs) Begin(ctx context.Context, started event.RunStarted) (event.Data, error) {
	if started.From != nil {
		from, err := b.inherit(ctx, *started.From)
		if err != nil {
			return nil, fmt.Errorf("what run %s kept: %w", from.Run, err)
		}
		started.From = &from
	}
	data, err := attached(started, func(digest string) ([]byte, error) {
		if content, ok := b.fresh[digest]; ok {
			return content, nil
		}
		return nil, fmt.Errorf("it has no content, and the run has none stored as %.100q", digest)
	})
	if err != nil {
		return nil, err
	}
	if whole, ok := data.(event.RunStarted); ok && whole.Input != nil {
		if err := Sendable(slices.Collect(whole.Input.Parts.Media())); err != nil {
			return nil, err
		}
	}
	return b.Detach(data), nil
}

// inherit adds what an ended run refers to.
func (b *Blobs) inherit(ctx context.Context, from event.ContinuedFrom) (event.ContinuedFrom, error) {
	refs, err := b.referred(ctx, from.Run)
	if err != nil {
		return from, err
	}
	from.Blobs = nil
	place := map[string]int{}
	for _, r := range refs {
		if i, ok := place[r.Digest]; ok {
			from.Blobs[i] = merged(from.Blobs[i], r)
			continue
		}
		content, err := b.Load(ctx, r.Digest)
		if err != nil {
			return from, err
		}
		b.Keep(content)
		place[r.Digest] = len(from.Blobs)
		from.Blobs = append(from.Blobs, r)
	}
	return from, nil
}

// referred lists what the events of a run refer to. A run that is not in this store has
// no readable contents here.
func (b *Blobs) referred(ctx context.Context, run string) ([]event.BlobRef, error) {
	var refs []event.BlobRef
	for e, err := range AsStored(ctx, b.store, run) {
		switch {
		case errors.Is(err, journal.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		}
		refs = append(refs, event.Blobs(e.Data)...)
	}
	return refs, nil
}
