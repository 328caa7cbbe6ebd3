package wire

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
)

// FileText returns a text file as text with its name at the beginning and end, for
// services that do not accept such files.
func FileText(m *llm.Media) (text string, ok bool) {
	if !strings.HasPrefix(m.MediaType, "text/") || m.URL != "" {
		return "", false
	}
	name := strings.NewReplacer(`"`, "'", "<", "(", ">", ")", "\n", " ").Replace(m.Name)
	return `<file name="` + name + "\">\n" + strings.TrimSuffix(string(m.Data), "\n") + "\n</file>", true
}

// Images holds a service's limits on images. The service rejects a request with an
// image beyond them, and so every later request of the conversation.
type Images struct {
	// Types are the supported media types.
	Types []string
	// Side is the maximum width and height in pixels, and Encoded the maximum size in
	// base64; 0 is no limit.
	Side, Encoded int
}

// OpenAIImages returns the limits of OpenAI and of compatible services.
func OpenAIImages() Images {
	return Images{Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}}
}

// Refused returns why the service rejects an image; nil if it accepts it, or if m is
// not an image.
func (s Images) Refused(m *llm.Media) error {
	if !strings.HasPrefix(m.MediaType, "image/") {
		return nil
	}
	kind := imageType(m)
	switch side := longSide(kind, m.Data); {
	case !slices.Contains(s.Types, kind):
		return fmt.Errorf("it is of type %q, and taken are %s", kind, strings.Join(s.Types, ", "))
	case s.Side > 0 && side > s.Side:
		return fmt.Errorf("it measures %d pixels, and at most %d each way are taken", side, s.Side)
	case s.Encoded > 0 && base64.StdEncoding.EncodedLen(len(m.Data)) > s.Encoded:
		return fmt.Errorf("it has %d bytes, and at most %d are taken", len(m.Data), base64.StdEncoding.DecodedLen(s.Encoded))
	}
	return nil
}

// Shown returns an image with the type of its bytes, or a text that replaces it, so
// that the model knows that it is missing.
func (s Images) Shown(m llm.Media) (shown llm.Media, words string) {
	if err := s.Refused(&m); err != nil {
		return m, fmt.Sprintf("[the image %q cannot be shown to this model: %v]", m.Name, err)
	}
	if strings.HasPrefix(m.MediaType, "image/") {
		m.MediaType = imageType(&m)
	}
	return m, ""
}

// imageType returns the type of an image's bytes, or else its declared type: services
// compare the two.
func imageType(m *llm.Media) string {
	if seen := http.DetectContentType(m.Data); strings.HasPrefix(seen, "image/") {
		return seen
	}
	said := m.MediaType
	if plain, _, err := mime.ParseMediaType(said); err == nil {
		said = plain // in lower case and without parameters
	}
	if said == "image/jpg" {
		return "image/jpeg"
	}
	return said
}

// longSide returns the larger of width and height in pixels, 0 if unknown.
func longSide(kind string, data []byte) int {
	read := map[string]func(io.Reader) (image.Config, error){
		"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
	}[kind]
	if read == nil {
		return 0
	}
	c, err := read(bytes.NewReader(data))
	if err != nil {
		return 0
	}
	return max(c.Width, c.Height)
}

// AppendBase64 appends bytes as a JSON string in base64.
func AppendBase64(dst, data []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), data)
	return append(dst, '"')
}

// AppendSource appends the source of an attachment as a JSON string: its address, or a
// data URL with its content.
func AppendSource(dst []byte, m *llm.Media) []byte {
	if len(m.Data) == 0 {
		return AppendQuoted(dst, m.URL)
	}
	dst = AppendQuoted(dst, "data:"+m.MediaType+";base64,")
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], m.Data)
	return append(dst, '"')
}
