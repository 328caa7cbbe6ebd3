package wire_test

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestAnImageIsShownUnderItsOwnTypeOrNamedInWords(t *testing.T) {
	picture := func(width, height int, encode func(*bytes.Buffer, image.Image) error) []byte {
		var b bytes.Buffer
		if err := encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	pngOf := func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }
	jpegOf := func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }
	gifOf := func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) }
	service := wire.Images{Types: []string{"image/png", "image/jpeg", "image/gif"}, Side: 100, Encoded: 2000}
	for name, c := range map[string]struct {
		file        llm.Media
		shown, says string
	}{
		"as it is":             {llm.Media{MediaType: "image/png", Data: picture(100, 3, pngOf)}, "image/png", ""},
		"under another's type": {llm.Media{MediaType: "image/png", Data: picture(9, 9, jpegOf)}, "image/jpeg", ""},
		"by its short name":    {llm.Media{MediaType: "image/jpg", URL: "https://example.com/a"}, "image/jpeg", ""},
		"in capitals":          {llm.Media{MediaType: "image/PNG; q=1", URL: "https://example.com/a"}, "image/png", ""},
		"of unknown bytes":     {llm.Media{MediaType: "image/png", Data: []byte("png")}, "image/png", ""},
		"no image":             {llm.Media{MediaType: "application/pdf", Data: []byte("%PDF-")}, "application/pdf", ""},
		"of another type":      {llm.Media{MediaType: "image/tiff", Name: "a.tif", Data: []byte("II*\x00")}, "", `the image "a.tif" cannot be shown to this model: it is of type "image/tiff"`},
		"a drawing":            {llm.Media{MediaType: "image/svg+xml", Data: []byte("<svg/>")}, "", `"image/svg+xml"`},
		"too high":             {llm.Media{MediaType: "image/png", Data: picture(3, 101, pngOf)}, "", "measures 101 pixels, and at most 100"},
		"too wide":             {llm.Media{MediaType: "image/jpeg", Data: picture(200, 1, jpegOf)}, "", "measures 200"},
		"too wide as well":     {llm.Media{MediaType: "image/gif", Data: picture(300, 1, gifOf)}, "", "measures 300"},
		"too many bytes":       {llm.Media{MediaType: "image/png", Data: []byte(strings.Repeat("x", 1501))}, "", "has 1501 bytes, and at most 1500"},
	} {
		t.Run(name, func(t *testing.T) {
			shown, words := service.Shown(c.file)
			if c.says == "" && (words != "" || shown.MediaType != c.shown || !bytes.Equal(shown.Data, c.file.Data)) {
				t.Errorf("shown as %q, words %q", shown.MediaType, words)
			}
			if c.says != "" && !strings.Contains(words, c.says) {
				t.Errorf("words %q, want them to hold %q", words, c.says)
			}
		})
	}
}
