package web

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// decoded is content as UTF-8: what the server says that it is, or the content
// itself. Where neither does, what can be read as UTF-8 is, and all else is taken
// for the letters of western Europe.
func decoded(content *bufio.Reader, contentType string) io.Reader {
	begin, _ := content.Peek(1024)
	encoding, name, certain := charset.DetermineEncoding(begin, contentType)
	var plain transform.Transformer
	switch {
	case name == "utf-8":
		plain = lenient{other: func(byte) rune { return utf8.RuneError }}
	case !certain && (name == "windows-1252" || looksLikeUTF8(begin)):
		plain = lenient{other: charmap.Windows1252.DecodeByte}
	default:
		plain = encoding.NewDecoder()
	}
	r := bufio.NewReader(&legible{r: transform.NewReader(content, plain)})
	if mark, _ := r.Peek(len("\uFEFF")); string(mark) == "\uFEFF" {
		_, _ = r.Discard(len(mark))
	}
	return r
}

// looksLikeUTF8 says that a text has characters beyond ASCII, and that they are
// UTF-8: hardly any other text is.
func looksLikeUTF8(begin []byte) bool {
	beyond := slices.ContainsFunc(begin, func(b byte) bool { return b >= utf8.RuneSelf })
	return beyond && utf8.Valid(wholeRunes(begin))
}

// lenient copies UTF-8, with something other in the place of each byte that is
// none. What a last character lacks was cut off, and it is left out.
type lenient struct {
	transform.NopResetter
	other func(byte) rune
}

func (l lenient) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		r, size := utf8.DecodeRune(src[nSrc:])
		if r == utf8.RuneError && size <= 1 {
			if !utf8.FullRune(src[nSrc:]) {
				if atEOF {
					return nDst, len(src), nil
				}
				return nDst, nSrc, transform.ErrShortSrc
			}
			r = l.other(src[nSrc])
		}
		if nDst+utf8.RuneLen(r) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc += size
	}
	return nDst, nSrc, nil
}

// errBinary is the error of content that is no text.
var errBinary = errors.New("it holds bytes that no text has")

// legible ends where a text holds what no text does.
type legible struct {
	r   io.Reader
	err error
}

func (l *legible) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.r.Read(p)
	l.err = err
	if at := bytes.IndexByte(p[:n], 0); at >= 0 {
		n, l.err = at, errBinary
	}
	return n, l.err
}

// wholeRunes leaves a last character out that was cut.
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
