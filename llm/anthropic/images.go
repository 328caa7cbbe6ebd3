package anthropic

import (
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

// The API's limits on images. In a request with more than manyImages, each image has
// the smaller size limit.
const (
	manyImages  = 20
	maxSide     = 8000
	maxManySide = 2000
	maxEncoded  = 10 << 20
)

// images returns the API's limits for a request with a number of images.
func images(count int) wire.Images {
	s := wire.Images{Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}, Side: maxSide, Encoded: maxEncoded}
	if count > manyImages {
		s.Side = maxManySide
	}
	return s
}

// Shows returns why an image cannot be shown to the model.
func (m *Model) Shows(f *llm.Media) error { return images(1).Refused(f) }

// countImages counts the images of a request.
func countImages(messages []*llm.Message) (n int) {
	for _, m := range messages {
		for f := range m.Parts.Media() {
			if strings.HasPrefix(f.MediaType, "image/") {
				n++
			}
		}
	}
	return n
}
