package drive

import (
	"fmt"

	"github.com/pawlrun/pawl/internal/host/attach"
	"github.com/pawlrun/pawl/llm"
)

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
