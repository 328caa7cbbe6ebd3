package web

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"
)

// weighed is a page of a size, made of pieces, that looks at every 256 KiB how much
// memory is held by whoever reads it.
type weighed struct {
	piece func(i int) string
	left  int
	rest  string
	next  int
	since int
	// before is what was held at the beginning, most the most that was held.
	before, most uint64
}

func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (w *weighed) Read(p []byte) (n int, err error) {
	for n < len(p) && w.left > 0 {
		if w.rest == "" {
			w.rest, w.next = w.piece(w.next), w.next+1
		}
		some := copy(p[n:], w.rest[:min(len(w.rest), w.left)])
		w.rest, w.left, n = w.rest[some:], w.left-some, n+some
	}
	if w.since += n; w.since > 256<<10 || n == 0 {
		w.since, w.most = 0, max(w.most, held())
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A parser that makes a tree of a page holds up to sixty bytes for each of it, and
// as many for each attribute of a tag.
func TestAPageTakesAFewTimesItsSizeInMemory(t *testing.T) {
	const size = 1 << 20
	always := func(s string) func(int) string { return func(int) string { return s } }
	begins := func(first, rest string) func(int) string {
		return func(i int) string {
			if i == 0 {
				return first
			}
			return rest
		}
	}
	base, err := url.Parse("https://example.com/" + strings.Repeat("p", 8000))
	if err != nil {
		t.Fatal(err)
	}
	for name, piece := range map[string]func(int) string{
		"text":                  always("all work and no play "),
		"a word without end":    always("work"),
		"empty paragraphs":      always("<p>"),
		"paragraphs":            always("<p>x"),
		"cells":                 begins("<table><tr>", "<td>x"),
		"tables":                always("<table><td></table>"),
		"items":                 begins("<ul>", "<li>"),
		"entities":              always("&lt;"),
		"entities without end":  always("&"),
		"numbers of characters": always("&#0000000000000000000000065"),
		"attributes":            begins("<p ", "a "),
		"attributes of different names": func(i int) string {
			if i == 0 {
				return "<p "
			}
			return fmt.Sprintf("a%d=x ", i)
		},
		"an attribute without end":          begins("<a href='", "xxxxxxxxxxxxxxxx"),
		"a style without end":               begins("<a style='", "x:y;xxxxxxxxxxxx"),
		"a name without end":                begins("<p", "xxxxxxxxxxxxxxxx"),
		"a comment":                         begins("<!--", "xxxxxxxxxxxxxxx-"),
		"comments":                          always("<!---->"),
		"a script":                          begins("<script>", "x = '</scripts>';"),
		"a script in a script":              begins("<script><!--<script>", "</script><script>"),
		"CDATA":                             begins("<svg><![CDATA[", "]]xxxxxxxxxxxxx"),
		"a title":                           begins("<title>", "xxxxxxxxxxxxxxx<"),
		"plain text":                        begins("<plaintext>", "<p>x"),
		"formatting":                        always("<b>"),
		"formatting that hides":             always("<b hidden><b>"),
		"formatting of all kinds":           always("<b><i><u><s><tt><em><font><code>"),
		"links":                             always("<a href=x>y</a>"),
		"links that are not closed":         always("<a href=x>y"),
		"short links to long addresses":     always("<a href='?'>x</a>"),
		"links that show nothing":           always("<a href='?'></a>"),
		"long links in links":               always("<marquee><a href=/" + strings.Repeat("x", 5000) + ">y"),
		"end tags":                          begins(strings.Repeat("<div>", 500), "</p>"),
		"elements of their own names":       func(i int) string { return fmt.Sprintf("<x-%d></x-%d>", i, i) },
		"images":                            always("<img alt=x>"),
		"doctypes":                          always("<!DOCTYPE html>"),
		"nothing but beginnings of tags":    always("<"),
		"nothing but beginnings of endings": always("</"),
	} {
		t.Run(name, func(t *testing.T) {
			page := &weighed{piece: piece, left: size, before: held()}
			text, _, err := reduce(page, reading{base: base, limit: size})
			if err != nil || len(text) > size {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			runtime.KeepAlive(text)
			if page.most == 0 {
				t.Skip("it was full before it was weighed") // the limit is reached by little of it
			}
			if times := float64(page.most-min(page.most, page.before)) / size; times > 3 {
				t.Errorf("%.1f times its size", times)
			}
		})
	}
}

func TestElementsThatAreNestedWithoutEndAreNotHeld(t *testing.T) {
	for _, piece := range []string{"<div>", "<svg>", "<x>", "<td><table>", "<a><marquee>", "<template>", "<b><object>"} {
		page := strings.NewReader("<table>" + strings.Repeat(piece, 100_000))
		if _, _, err := reduce(page, reading{base: &url.URL{}, limit: 1000}); err == nil || !strings.Contains(err.Error(), "nested deeper than 512") {
			t.Errorf("%s: %v", piece, err)
		}
	}
}

// What is read in pieces reads as if it came whole.
func TestALongTextIsNotCutInItsCharacters(t *testing.T) {
	for _, s := range []string{"&CounterClockwiseContourIntegral;", "ü", "日本", "a&amp;", "word ", "&#x1F600;", "x\r\n"} {
		var whole bytes.Buffer
		for whole.Len() < 5*maxPiece {
			whole.WriteString(s)
		}
		got, _, err := reduce(strings.NewReader("<pre>a"+whole.String()), reading{base: &url.URL{}, limit: 1 << 20})
		want, _, _ := reduce(strings.NewReader("<pre>"+s), reading{base: &url.URL{}, limit: 1 << 20})
		if strings.TrimPrefix(s, "word") == s && s != "x\r\n" {
			want = "a" + strings.Repeat(want, whole.Len()/len(s))
		} else {
			want = "a" + strings.TrimSpace(strings.ReplaceAll(whole.String(), "\r\n", "\n"))
		}
		if err != nil || got != want {
			t.Errorf("%q: %d bytes for %d, %v", s, len(got), len(want), err)
		}
	}
}
