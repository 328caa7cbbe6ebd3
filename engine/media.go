package engine

import (
	"fmt"

	"github.com/pawlrun/pawl/attach"
	"github.com/pawlrun/pawl/llm"
)

// maxMedia is how many images and files one result may bring: what the strictest
// provider takes in a whole request.
const maxMedia = 100

// carried are the images and files of a result that the requests after it can
// carry: each of them repeats them, so that what no provider takes would have
// every one refused. Left is a line about the others for the model.
func carried(media []llm.Media) (kept []llm.Media, left string) {
	var sizes attach.Sizes
	for i := range media {
		m := &media[i]
		hollow := len(m.Data) == 0 && m.URL == ""
		if hollow || len(kept) == maxMedia || sizes.Add(m) != nil {
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
		n, len(media), were, maxMedia, attach.MaxFile>>20, attach.MaxText>>20, attach.MaxAll>>20)
}

// sendable refuses the images and files of a message that no request carries.
func sendable(media []llm.Media) error {
	var sizes attach.Sizes
	for i := range media {
		m := &media[i]
		if len(m.Data) == 0 {
			return fmt.Errorf("the attachment %q has no content", m.Name)
		}
		if err := sizes.Add(m); err != nil {
			return fmt.Errorf("the attachment %q %w", m.Name, err)
		}
	}
	if len(media) > maxMedia {
		return fmt.Errorf("a message may bring %d images and files, and this one has %d", maxMedia, len(media))
	}
	return nil
}
