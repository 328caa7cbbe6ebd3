package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestEventsReadTheSameHoweverTheBytesAreCut(t *testing.T) {
	for name, stream := range map[string]string{
		"lf":        "\xef\xbb\xbfevent: a\ndata: 1\ndata:2\n\n: comment\ndata: {}\n\n",
		"crlf":      "\xef\xbb\xbfevent: a\r\ndata: 1\r\ndata:2\r\n\r\n: comment\r\ndata: {}\r\n\r\n",
		"cr":        "\xef\xbb\xbfevent: a\rdata: 1\rdata:2\r\r: comment\rdata: {}\r\r",
		"kept open": "data:\n\nevent: ping\ndata\ndata: \t\n\nevent: a\ndata: 1\ndata:2\n\nevent: ping\n\ndata: {}\n\n",
		"cut":       "\xef\xbb\xbfevent: a\ndata: 1\ndata:2\n\nid: 7\ndata: {}\n\nevent: lost\ndata: never finished\n",
	} {
		for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
			e := wire.NewEventReader(r)
			var got []string
			for {
				name, data, err := e.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(name)+"|"+string(data))
			}
			if want := "a|1\n2 |{}"; strings.Join(got, " ") != want {
				t.Errorf("%s: got %q, want %q", name, strings.Join(got, " "), want)
			}
		}
	}
}

// An event that is whole is not lost for want of the line that ends it.
func TestTheLastEventMayLackItsEnd(t *testing.T) {
	for last, want := range map[string]string{
		"event: end\ndata: {\"a\":\ndata: 1}\r\n": "end|{\"a\":\n1}\x00",
		"data: {\"a\":1}\r":                       "|{\"a\":1}\x00",
		"data: {\"a\":1}":                         "|{\"a\":1}\x00",
		"data:[DONE]":                             "|[DONE]\x00",
		"data: {\"a\":1":                          "",
		"data: {\"a\":1}\nda":                     "|{\"a\":1}\x00",
		"data: {\"a\":\ndata: 1":                  "",
		"data: 12":                                "",
		"data: [DON":                              "",
		"event: end\n":                            "",
		": {}":                                    "",
	} {
		if got, err := readEvents(strings.NewReader("\xef\xbb\xbf" + last)); !errors.Is(err, io.EOF) || got != want {
			t.Errorf("%q behind a byte-order mark: got %q, %v", last, got, err)
		}
		for _, r := range []io.Reader{strings.NewReader("data: 1\n\n" + last), iotest.OneByteReader(strings.NewReader("data: 1\n\n" + last))} {
			if got, err := readEvents(r); !errors.Is(err, io.EOF) || got != "|1\x00"+want {
				t.Errorf("%q: got %q, %v", last, got, err)
			}
		}
		broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(last)))
		if got, err := readEvents(broken); errors.Is(err, io.EOF) || got != "" {
			t.Errorf("%q, of which the connection broke: got %q, %v", last, got, err)
		}
	}
}

// readEvents reads every event of a stream, one a line.
func readEvents(r io.Reader) (string, error) {
	e := wire.NewEventReader(r)
	var out strings.Builder
	for {
		name, data, err := e.Next()
		if err != nil {
			return out.String(), err
		}
		out.Write(name)
		out.WriteByte('|')
		out.Write(data)
		out.WriteByte('\x00')
	}
}

func TestAnEventLargerThanTheBufferIsReadWhole(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	got, err := readEvents(iotest.HalfReader(strings.NewReader("data: " + long + "\n\ndata: y\n\n")))
	if !errors.Is(err, io.EOF) || got != "|"+long+"\x00|y\x00" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestAnEndlessLineIsRefused(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), zeros{})
	if _, err := readEvents(endless); !errors.Is(err, wire.ErrEventTooLarge) {
		t.Errorf("got %v", err)
	}
}

// zeros is a stream without an end and without a line end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAnEventOfTooManyLinesIsRefused(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	if _, err := readEvents(strings.NewReader(strings.Repeat(line, 70))); !errors.Is(err, wire.ErrEventTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestABrokenConnectionIsNotAnEnd(t *testing.T) {
	broken := errors.New("reset")
	got, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)))
	if got != "|a\x00" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzEvents reads the same bytes whole, byte by byte, and with every line end.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "\xef\xbb\xbfevent: x\r\ndata\r\n\r\n", "data:a\rdata: b\r\r", ":c\n\n\nid: 1\ndata: x", "\r\n\n\rdata: q\n\r"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, _ := readEvents(bytes.NewReader(data))
		if single, _ := readEvents(iotest.OneByteReader(bytes.NewReader(data))); single != whole {
			t.Fatalf("%q reads as %q byte by byte, as %q whole", data, single, whole)
		}
		if last, _ := readEvents(iotest.DataErrReader(bytes.NewReader(data))); last != whole {
			t.Fatalf("%q reads as %q when its end comes with its last bytes, else as %q", data, last, whole)
		}
		// Line ends are equal: rewriting them as LF changes no event.
		lf := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		if plain, _ := readEvents(bytes.NewReader(lf)); plain != whole {
			t.Fatalf("%q reads as %q with LF, else as %q", data, plain, whole)
		}
	})
}
