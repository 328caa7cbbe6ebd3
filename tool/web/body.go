package web

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// page is the content of an answer.
type page struct {
	mediaType string
	text      string
	// cut reports that there was more than the tool reads.
	cut bool
}

// body reads an answer's body: bounded, decompressed, and converted to UTF-8. The
// caller closes the body.
func (o Options) body(resp *http.Response, redact func(string) string) (page, error) {
	most := o.MaxBytes + ahead(redact)
	raw := &io.LimitedReader{R: resp.Body, N: most + 1}
	body, err := decompressed(resp, raw)
	if err != nil {
		return page{}, err
	}
	plain := &io.LimitedReader{R: body, N: most + 1}
	buffered := bufio.NewReader(plain)
	p := page{}
	if p.mediaType, err = kind(resp, buffered); err != nil {
		return page{}, err
	}
	content, err := io.ReadAll(buffered)
	p.cut = raw.N <= 0 || plain.N <= 0 // a byte beyond the limit was read
	content = content[:min(int64(len(content)), most)]
	if err != nil && !(p.cut && errors.Is(err, io.ErrUnexpectedEOF)) {
		return page{}, fmt.Errorf("the answer broke off: %w", err)
	}
	p.text, err = text(content, resp.Header.Get("Content-Type"))
	if err != nil || strings.ContainsRune(p.text, 0) {
		return page{}, unfit(p.mediaType + " with binary content")
	}
	// A byte of another encoding may become three bytes of UTF-8.
	p.text, p.cut = o.beginning(p.text, p.cut, redact)
	return p, nil
}

// ahead returns how many bytes beyond the shown part are read to find secrets across
// its end.
func ahead(redact func(string) string) int64 {
	if redact == nil {
		return 0
	}
	return tool.Seam
}

// beginning returns the shown part of a text, and whether more follows. It ends with a
// whole character and does not cut a secret in half, because the redaction would miss
// the half. A text that is already cut continues out of sight.
func (o Options) beginning(text string, cut bool, redact func(string) string) (string, bool) {
	end := int64(len(text))
	if cut {
		end -= ahead(redact)
	}
	end = max(0, min(end, o.MaxBytes))
	if end == int64(len(text)) {
		return text, cut
	}
	return string(wholeRunes([]byte(text[:tool.SafeEnd(text, int(end), redact)]))), true
}

// text returns content as UTF-8. The server or the content itself declares the
// encoding; without a declaration it is UTF-8 if that is valid.
func text(content []byte, contentType string) (string, error) {
	const mark = "\uFEFF"
	encoding, name, certain := charset.DetermineEncoding(content, contentType)
	if whole := wholeRunes(content); name == "utf-8" || !certain && utf8.Valid(whole) {
		return strings.ToValidUTF8(strings.TrimPrefix(string(whole), mark), "\uFFFD"), nil
	}
	decoded, err := encoding.NewDecoder().Bytes(content)
	return strings.ToValidUTF8(strings.TrimPrefix(string(decoded), mark), "\uFFFD"), err
}

// wholeRunes drops an incomplete last character.
func wholeRunes(content []byte) []byte {
	for i := len(content) - 1; i >= max(len(content)-utf8.UTFMax, 0); i-- {
		if utf8.RuneStart(content[i]) {
			if !utf8.FullRune(content[i:]) {
				return content[:i]
			}
			break
		}
	}
	return content
}

// decompressed undoes the one encoding that was requested.
func decompressed(resp *http.Response, body io.Reader) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the answer says that it is compressed and cannot be read: %w", err)
		}
		return unzipped, nil
	default:
		return nil, &tool.Error{Type: event.ErrorTool, Message: fmt.Sprintf("the answer is compressed as %.40q, which was not asked for", encoding)}
	}
}

// kind returns the media type of an answer that can be text. If a server sends no
// type, the beginning of the content decides.
func kind(resp *http.Response, body *bufio.Reader) (string, error) {
	given := resp.Header.Get("Content-Type")
	if given == "" {
		begin, _ := body.Peek(512)
		given = http.DetectContentType(begin)
	}
	mediaType, _, err := mime.ParseMediaType(given)
	if err != nil && mediaType == "" {
		return "", unfit(fmt.Sprintf("%.100q", given))
	}
	if !textual(mediaType) {
		return "", unfit(mediaType)
	}
	return mediaType, nil
}

func unfit(what string) error {
	return &tool.Error{Type: event.ErrorTool, Message: "the page is " + what + "; HTML, plain text, JSON and XML are given"}
}

func textual(mediaType string) bool {
	switch mediaType {
	case "application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/x-javascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/sql", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasPrefix(mediaType, "application/") &&
		(strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml") || strings.HasSuffix(mediaType, "+yaml"))
}

func isHTML(mediaType string) bool {
	return mediaType == "text/html" || mediaType == "application/xhtml+xml"
}
