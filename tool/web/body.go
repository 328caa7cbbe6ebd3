package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
)

// page is what an answer holds.
type page struct {
	mediaType string
	text      string
	// cut says that there was more than the tool reads or gives.
	cut bool
}

// body reads an answer's body as long as it comes fast enough. What has begun
// with ctx ends with it: closing the body is the caller's.
func (o Options) body(ctx context.Context, resp *http.Response, base *url.URL, source bool) (page, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	from := &paced{r: resp.Body}
	go from.watch(ctx, giveUp)
	// A read that waits for the next byte sees no context; it ends with the body.
	defer context.AfterFunc(ctx, func() { _ = resp.Body.Close() })()
	room := &place{places: o.Places, paced: from}
	defer room.free()
	p, err := o.read(resp, from, reading{base: base, source: source, limit: o.MaxBytes, room: func() error { return room.take(ctx) }})
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(err, errNoPlace) {
		err = why
	}
	return p, err
}

// reading is how the text of a page is taken in.
type reading struct {
	// base is the page's own address, source says that HTML is given as it is.
	base   *url.URL
	source bool
	// limit bounds the text in bytes. Room is asked for before a text becomes
	// long; nil is always room.
	limit int64
	room  func() error
}

// read takes in what comes of a body: bounded, decompressed, as UTF-8, and HTML
// as its text unless its source is wanted.
func (o Options) read(resp *http.Response, from io.Reader, how reading) (page, error) {
	packed := &bounded{r: from, left: o.MaxBytes}
	body, err := decompressed(resp, packed)
	if err != nil {
		return page{}, err
	}
	plain := &bounded{r: body, left: o.MaxBytes, cutBelow: &packed.cut}
	buffered := bufio.NewReader(plain)
	p := page{}
	if p.mediaType, err = kind(resp, buffered); err != nil {
		return page{}, err
	}
	content := decoded(buffered, resp.Header.Get("Content-Type"))
	if isHTML(p.mediaType) && !how.source {
		p.text, p.cut, err = reduce(content, how)
	} else {
		p.text, p.cut, err = collect(content, how)
	}
	p.cut = p.cut || packed.cut || plain.cut
	switch _, typed := errors.AsType[*tool.Error](err); {
	case errors.Is(err, errBinary):
		return page{}, unfit(p.mediaType + " with binary content")
	case err != nil && !typed:
		return page{}, fmt.Errorf("the answer broke off: %w", err)
	}
	return p, err
}

// collect gives a text as it stands.
func collect(content io.Reader, how reading) (whole string, cut bool, err error) {
	text := longText{limit: int(how.limit), room: how.room}
	if _, err = io.Copy(&text, content); errors.Is(err, errFull) {
		return text.String(), true, nil
	}
	return text.String(), false, err
}

// decompressed undoes the one encoding that was asked for.
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

// kind is the media type of an answer that can be given as text. What a server
// does not say is told from how the content begins.
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

// bounded reads so many bytes and then ends; cut says that there was more.
type bounded struct {
	r    io.Reader
	left int64
	cut  bool
	// cutBelow says that what is read here was cut where it comes from, and so
	// ends where it does.
	cutBelow *bool
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.read(p)
	if b.cutBelow != nil && *b.cutBelow && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

func (b *bounded) read(p []byte) (int, error) {
	if b.left <= 0 {
		var one [1]byte
		n, err := io.ReadFull(b.r, one[:])
		if n > 0 {
			b.cut = true
			return 0, io.EOF
		}
		return 0, err
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
