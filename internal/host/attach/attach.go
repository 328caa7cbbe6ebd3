// Package attach reads images and files that accompany a task. It determines the type
// of a file from its content, not from its name.
package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/pawlrun/pawl/llm"
)

// Limits on the attachments of one message, in bytes. Providers accept requests of 20
// to 32 MB, and encoding makes files a third larger.
const (
	MaxFile = 15 << 20
	MaxText = 1 << 20
	MaxAll  = 20 << 20
)

// MaxFiles is the maximum number of images and files of one message: what the strictest
// provider accepts in a whole request.
const MaxFiles = 100

// Errors for callers to distinguish.
var (
	// ErrType is returned for a file that no model can read.
	ErrType = errors.New("is not an image (PNG, JPEG, GIF, WebP), a PDF or a text in UTF-8")
	// ErrTooLarge is returned for files above the limits, alone or together.
	ErrTooLarge = errors.New("is too large")
	// ErrTooMany is returned for a file above MaxFiles.
	ErrTooMany = errors.New("is one too many")
)

// Files reads files in order. The error names the file.
func Files(paths ...string) ([]llm.Media, error) {
	var all []llm.Media
	var sizes Sizes
	for _, path := range paths {
		m, err := File(path)
		if err != nil {
			return nil, err
		}
		if err := sizes.Add(&m); err != nil {
			return nil, fmt.Errorf("attach: %s %w", path, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// Sizes accumulates the sizes of the attachments of one message. The zero value is
// empty.
type Sizes struct{ total, files int }

// Add adds one attachment. If it is too large, alone or together with the others, Add
// does not add it and returns [ErrTooLarge]; beyond [MaxFiles] it returns [ErrTooMany].
func (s *Sizes) Add(m *llm.Media) error {
	if err := bounded(m); err != nil {
		return err
	}
	switch {
	case s.total+len(m.Data) > MaxAll:
		return fmt.Errorf("%w: together the files have more than %d MiB", ErrTooLarge, MaxAll>>20)
	case s.files == MaxFiles:
		return fmt.Errorf("%w: at most %d images and files are taken", ErrTooMany, MaxFiles)
	}
	s.total += len(m.Data)
	s.files++
	return nil
}

// bounded rejects an attachment that is too large by itself.
func bounded(m *llm.Media) error {
	limit := MaxFile
	if strings.HasPrefix(m.MediaType, "text/") {
		limit = MaxText
	}
	if len(m.Data) > limit {
		return fmt.Errorf("%w: it has %d bytes or more, and at most %d MiB of this kind are taken", ErrTooLarge, len(m.Data), limit>>20)
	}
	return nil
}

// File reads a file, or a pipe with a writer.
func File(path string) (llm.Media, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe without a writer would block
	if err != nil {
		return llm.Media{}, fmt.Errorf("attach: %w", err)
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return llm.Media{}, fmt.Errorf("attach: %w", err)
	case info.IsDir() || info.Mode()&os.ModeDevice != 0:
		return llm.Media{}, fmt.Errorf("attach: %s is not a file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return llm.Media{}, fmt.Errorf("attach: %w", err)
	}
	m, err := Data(filepath.Base(path), data)
	if err != nil {
		return llm.Media{}, fmt.Errorf("attach: %s %w", path, err)
	}
	return m, nil
}

// Data makes an attachment from content. The name must be valid text, because the model
// sees it and a journal cannot store any other name unchanged.
func Data(name string, content []byte) (llm.Media, error) {
	m := llm.Media{MediaType: sniff(content), Name: name, Data: content}
	switch {
	case !utf8.ValidString(name):
		return llm.Media{}, errors.New("has a name that is not UTF-8; rename it")
	case len(content) == 0:
		return llm.Media{}, errors.New("is empty")
	case m.MediaType == "":
		return llm.Media{}, ErrType
	}
	if err := bounded(&m); err != nil {
		return llm.Media{}, err
	}
	return m, nil
}

// sniff returns the media type of content, "" for one that no model can read.
func sniff(content []byte) string {
	for _, known := range []struct{ prefix, mediaType string }{
		{"\x89PNG\r\n\x1a\n", "image/png"}, {"\xff\xd8\xff", "image/jpeg"},
		{"GIF87a", "image/gif"}, {"GIF89a", "image/gif"}, {"%PDF-", "application/pdf"},
	} {
		if bytes.HasPrefix(content, []byte(known.prefix)) {
			return known.mediaType
		}
	}
	switch {
	case len(content) >= 12 && string(content[:4]) == "RIFF" && string(content[8:12]) == "WEBP":
		return "image/webp"
	case utf8.Valid(content) && !bytes.ContainsFunc(content, unprintable):
		return "text/plain"
	}
	return ""
}

// unprintable reports whether a character does not occur in text.
func unprintable(c rune) bool {
	return c == 0x7f || c < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", c)
}
