package engine

import (
	"fmt"
	"strings"

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
	total := 0
	for i := range media {
		m := &media[i]
		if len(kept) == maxMedia || total+len(m.Data) > attach.MaxAll || unfitMedia(m) != "" {
			continue
		}
		total += len(m.Data)
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

// unfitMedia says why no request carries an image or a file; "" is one that fits.
func unfitMedia(m *llm.Media) string {
	limit := attach.MaxFile
	if strings.HasPrefix(m.MediaType, "text/") {
		limit = attach.MaxText
	}
	switch {
	case len(m.Data) == 0 && m.URL == "":
		return "has no content"
	case len(m.Data) > limit:
		return fmt.Sprintf("is too large: it has %d bytes, and at most %d MiB of this kind are taken", len(m.Data), limit>>20)
	}
	return ""
}

// sendable refuses the images and files of a message that no request carries.
func sendable(media []llm.Media) error {
	total := 0
	for i := range media {
		m := &media[i]
		switch why := unfitMedia(m); {
		case len(m.Data) == 0:
			return fmt.Errorf("the attachment %q has no content", m.Name)
		case why != "":
			return fmt.Errorf("the attachment %q %s", m.Name, why)
		}
		if total += len(m.Data); total > attach.MaxAll {
			return fmt.Errorf("the attachment %q is too large: together the files have more than %d MiB", m.Name, attach.MaxAll>>20)
		}
	}
	if len(media) > maxMedia {
		return fmt.Errorf("a message may bring %d images and files, and this one has %d", maxMedia, len(media))
	}
	return nil
}
