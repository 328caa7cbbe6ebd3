package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/web"
)

// small are options that read little and wait shortly.
func small() web.Options {
	o := local()
	o.MaxBytes, o.Timeout = 10_000, 5*time.Second
	return o
}

func endless(w io.Writer, chunk []byte) {
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestOnlyTheBeginningOfALargePageIsRead(t *testing.T) {
	zeros := bytes.Repeat([]byte("all work and no play\n"), 1000)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 500 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	zipped := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
	}
	for name, h := range map[string]http.HandlerFunc{
		"a large one": gives("text/plain", string(zeros)),
		"an endless one": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			endless(w, zeros)
		},
		"a bomb": func(w http.ResponseWriter, _ *http.Request) { zipped(w); _, _ = w.Write(bomb.Bytes()) },
		"an endless bomb": func(w http.ResponseWriter, _ *http.Request) {
			zipped(w)
			endless(gzip.NewWriter(w), zeros)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := fetch(t, small(), map[string]any{"url": serve(t, h)})
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := strings.Cut(r.Output, "\n")
			if !r.Truncated || !strings.Contains(head, "only its beginning was read") || len(body) != 10_000 {
				t.Errorf("truncated %v, %s, %d bytes", r.Truncated, head, len(body))
			}
		})
	}
}

// An endless stream of compressed nothing gives no byte of a page; what comes
// over the wire is bounded as well.
func TestAnEndlessPageOfNothingEnds(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for {
			if err := z.Flush(); err != nil {
				return
			}
		}
	})
	r, err := fetch(t, small(), map[string]any{"url": address})
	if err != nil || !r.Truncated {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestASlowPageIsGivenUp(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"that never answers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"that never ends": func(w http.ResponseWriter, r *http.Request) {
			gives("text/plain", "begin")(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.Timeout = 100 * time.Millisecond
			if err := fails(t, o, serve(t, h)); err.Type != event.ErrorTimeout || !strings.Contains(err.Message, "within 100ms") || !err.NothingCame {
				t.Errorf("got %s: %s", err.Type, err.Message)
			}
		})
	}
}

func TestACallMayAskForLess(t *testing.T) {
	address := serve(t, gives("text/html", "<p>one <i>two</i> drei ü</p>"))
	for _, tt := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"url": address}, "[" + address + "; 200 OK; text/html]\none two drei ü"},
		{map[string]any{"url": address, "source": true}, "[" + address + "; 200 OK; text/html]\n<p>one <i>two</i> drei ü</p>"},
		{map[string]any{"url": address, "max_chars": 7}, "[" + address + "; 200 OK; text/html; the first 7 of 14 characters]\none two"},
		{map[string]any{"url": address, "max_chars": 14}, "[" + address + "; 200 OK; text/html]\none two drei ü"},
	} {
		r, err := fetch(t, local(), tt.args)
		if err != nil || r.Output != tt.want {
			t.Errorf("%v: %q, %v", tt.args, r.Output, err)
		}
	}
}

// A page that repeats what was sent to it would give a secret away, but for a
// character, to who asks for less of it again and again.
func TestWhatACallAsksForLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "sk-0123456789"
	address := serve(t, gives("text/plain", "it is "+secret+", you said"))
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
	for chars := 1; chars < 30; chars++ {
		args := json.RawMessage(fmt.Sprintf(`{"url":%q,"max_chars":%d}`, address, chars))
		r, err := web.New(local()).Run(t.Context(), tool.Call{ID: "c", Args: args, Redact: redact})
		if err != nil || strings.Contains(redact(r.Output), "sk-") {
			t.Errorf("%d characters: %q, %v", chars, redact(r.Output), err)
		}
	}
}

// A page that repeats what was sent to it may be filled up so that what is given
// of it ends amid that.
func TestTheEndOfACutPageLeavesNoHalfOfASecret(t *testing.T) {
	secret := strings.Repeat("sk-0123456789ab-", 200)
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
	o := local()
	o.MaxBytes = 10_000
	fill := func(n int) string { return strings.Repeat("filled up ", 1+n/10)[:n] }
	link := "<a href=x>y</a> "
	for name, tt := range map[string]struct {
		contentType, begin string
	}{
		"text":                   {"text/plain", ""},
		"HTML":                   {"text/html", "<p>"},
		"HTML that grows":        {"text/html", strings.Repeat(link, 100)},
		"of two bytes each":      {"text/plain; charset=iso-8859-1", strings.Repeat("\xfc", 1000)},
		"of another size at all": {"text/plain; charset=utf-8", strings.Repeat("\xff", 2000)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, after := range []int{0, 100, 1 << 20} {
				for before := 100; before < 10_000; before += 450 {
					address := serve(t, gives(tt.contentType, tt.begin+fill(before)+secret+fill(after)))
					args := json.RawMessage(fmt.Sprintf(`{"url":%q}`, address))
					r, err := web.New(o).Run(t.Context(), tool.Call{ID: "c", Args: args, Redact: redact})
					if err != nil {
						t.Fatal(err)
					}
					_, body, _ := strings.Cut(r.Output, "\n")
					if left := redact(r.Output); strings.Contains(left, "sk-") {
						t.Errorf("%d bytes before it and %d after it: …%s", before, after, left[len(left)-60:])
					}
					if len(body) > int(o.MaxBytes) || !strings.Contains(body, "filled") {
						t.Errorf("%d bytes before it and %d after it: %d bytes are given", before, after, len(body))
					}
				}
			}
		})
	}
}

func TestACutPageEndsWithAWholeCharacter(t *testing.T) {
	o := local()
	o.MaxBytes = 1001
	if got := get(t, o, serve(t, gives("text/plain; charset=utf-8", strings.Repeat("ü", 2000)))); got != strings.Repeat("ü", 500) {
		t.Errorf("%d bytes, ending with %q", len(got), got[len(got)-4:])
	}
	if got := get(t, o, serve(t, gives("text/plain", strings.Repeat("ü", 2000)))); got != strings.Repeat("ü", 500) {
		t.Errorf("%d bytes, ending with %q", len(got), got[len(got)-4:])
	}
}

// What is one byte in the page's encoding may be three as UTF-8.
func TestAPageDoesNotGrowBeyondItsBoundWhenItIsDecoded(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType string
		piece       string
	}{
		"one byte becomes three":      {"text/plain; charset=windows-1252", "\x80"},
		"its own words name it":       {"text/html", "<meta charset=windows-1252>\x80"},
		"what is no character is one": {"text/plain; charset=utf-8", "a\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			address := serve(t, gives(tt.contentType, strings.Repeat(tt.piece, int(o.MaxBytes)/len(tt.piece))))
			r, err := fetch(t, o, map[string]any{"url": address, "source": true})
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := strings.Cut(r.Output, "\n")
			if !r.Truncated || !strings.Contains(head, "only its beginning was read") || len(body) > int(o.MaxBytes) || !utf8.ValidString(body) {
				t.Errorf("truncated %v, %s, %d bytes", r.Truncated, head, len(body))
			}
		})
	}
}
