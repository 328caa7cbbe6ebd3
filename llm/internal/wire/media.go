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

// FileText is a text file in words, for services that take no such files. The
// name tells the model where it begins and ends.
func FileText(m *llm.Media) (text string, ok bool) {
	if !strings.HasPrefix(m.MediaType, "text/") || m.URL != "" {
		return "", false
	}
	name := strings.NewReplacer(`"`, "'", "<", "(", ">", ")", "\n", " ").Replace(m.Name)
	return `<file name="` + name + "\">\n" + strings.TrimSuffix(string(m.Data), "\n") + "\n</file>", true
}

// Images is what a service takes of images. One that it does not take would have
// it refuse the request, and every later one, because each repeats it.
type Images struct {
	// Types are the media types that it reads.
	Types []string
	// Side is the most that an image may measure either way, in pixels, and
	// Encoded the most bytes that it may have in base64; 0 is no bound.
	Side, Encoded int
}

// OpenAIImages is what OpenAI takes of images, and the services that speak its way.
func OpenAIImages() Images {
	return Images{Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}}
}

// Refused says why the service does not take an image; nil where it does, and for
// what is no image.
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

// Shown is an image under the type that its bytes have, or what stands in its place
// in words, so that the model knows that something is missing.
func (s Images) Shown(m llm.Media) (shown llm.Media, words string) {
	if err := s.Refused(&m); err != nil {
		return m, fmt.Sprintf("[the image %q cannot be shown to this model: %v]", m.Name, err)
	}
	if strings.HasPrefix(m.MediaType, "image/") {
		m.MediaType = imageType(&m)
	}
	return m, ""
}

// imageType is what an image's bytes say that it is, else what was said of it:
// services compare the two.
func imageType(m *llm.Media) string {
	if seen := http.DetectContentType(m.Data); strings.HasPrefix(seen, "image/") {
		return seen
	}
	said := m.MediaType
	if plain, _, err := mime.ParseMediaType(said); err == nil {
		said = plain // in small letters, and without parameters
	}
	if said == "image/jpg" {
		return "image/jpeg"
	}
	return said
}

// longSide is the larger of an image's measures in pixels, 0 where it is not known.
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

// AppendSource appends where an attachment is as a JSON string: its address, or
// a data URL that holds it.
func AppendSource(dst []byte, m *llm.Media) []byte {
	if len(m.Data) == 0 {
		return AppendQuoted(dst, m.URL)
	}
	dst = AppendQuoted(dst, "data:"+m.MediaType+";base64,")
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], m.Data)
	return append(dst, '"')
}
