package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/tool"
)

func TestAPageIsReducedToWhatAPersonReads(t *testing.T) {
	base, err := url.Parse("https://example.com/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, page, want string }{
		{"paragraphs", "<p>one\n two</p>\n<p>three", "one two\n\nthree"},
		{"words across tags", "a<b>b</b>c <i>d</i>, e", "abc d, e"},
		{"headings", "<title>T</title><h1>A</h1>x<h3>B</h3>", "# T\n\n# A\n\nx\n\n### B"},
		{"lists", "<ul><li>a<li><p>b</p></ul>c", "- a\n- b\n\nc"},
		{"a table", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"},
		{"code as it stands", "<pre>a\n  b</pre>c", "a\n  b\n\nc"},
		{"links", `<a href="/x?a=1#top">one</a> <a href=other>two</a>, <a href="#here">three</a> <a href="javascript:x()">four</a><a href=/y> </a>`,
			"[one](https://example.com/x?a=1) [two](https://example.com/dir/other), three four"},
		{"links of a page with another base", `<base target=x><base href="/docs/v2/"><base href=/no/><a href=a>x</a> <a href=/b>y</a>`,
			"[x](https://example.com/docs/v2/a) [y](https://example.com/b)"},
		{"a base on another host", `<base href="//other.example/d/"><a href=a>x</a>`, "[x](https://other.example/d/a)"},
		{"a base that is no place", `<base href="data:text/html,"><a href=a>x</a>`, "[x](https://example.com/dir/a)"},
		{"a link with credentials", `<a href="https://u:p@example.com/">x</a>`, "x"},
		{"an image", `<img alt="a cat" src=x>`, "[image: a cat]"},
		{"a break", "a<br>b<br/>c", "a\nb\nc"},
		{"entities", "a &amp; b &lt;c&gt;", "a & b <c>"},
		{"what is no text", "<script>evil()</script><style>p{}</style><noscript>x</noscript><template>y</template><!-- z --><svg><text>t</text></svg>a", "a"},
		{"what is hidden", `<p hidden>1</p><div style="color:red; Display: none !important">2</div><span aria-hidden=TRUE>3</span><i style="font-size:0">4</i>a`, "a"},
		{"a hidden paragraph that is not closed", `<p style="visibility:hidden">1<p>2`, "2"},
		{"characters that nobody sees", "a\U000E0049\U000E0067\u202eb\u200bc\u00add", "abcd"},
		{"no HTML at all", "just text", "just text"},
		{"a hidden word that is closed in its paragraph", `<p>a <i class=x aria-hidden=true>1</i>b <b><i hidden>2</i>c</b><p>d`, "a b c\n\nd"},
		{"a hidden word that is not closed", `<p>a <b hidden>1<p>b`, "a\n\nb"},
		{"formatting that is nested deep", strings.Repeat("<b>", 600) + "a", "a"},
		{"a link around formatting", `<a href=/x><b>a</b></a>`, "[a](https://example.com/x)"},
		{"a closed dialog", "a<dialog>b</dialog><dialog open>c</dialog>d<div popover>e</div>", "acd"},
		{"a page that hides itself", "<body hidden>a", ""},
		{"more than one way to hide", `<p style="opacity:0.0">1<p style="font-size: 0em;">2<p style="visibility:collapse">3<p style="opacity:.5;font-size:0.8em">a`, "a"},
		{"hidden after what hides nothing", `<p aria-hidden=false style="display : none !important">1</p>a`, "a"},
		{"nothing", "", ""},
		{"broken", "<p<b>x</i></p></p></table>y<", "x\n\ny<"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, cut, err := reduce(t.Context(), tt.page, base, 1<<20, new(PageLimit)); err != nil || cut || got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// Each of these pages is small, and was read for hours or into gigabytes.
func TestAPageThatIsMadeToBeDearIsReadLikeAnyOther(t *testing.T) {
	const limit = 100_000
	long, err := url.Parse("https://example.com/" + strings.Repeat("p", 8000))
	if err != nil {
		t.Fatal(err)
	}
	open := "<p>"
	for i := range 400 {
		open += fmt.Sprintf("<b i=%d>", i)
	}
	for _, tt := range []struct {
		name, page, begins string
		cut                bool
	}{
		{"anchors in anchors", strings.Repeat("<a><marquee>x", 200), "xxx", false},
		{"links in links", strings.Repeat("<a href=/y><marquee>x", 200), "[x[x[x", false},
		{"short links on a long base", "<base href='/" + strings.Repeat("p", 100_000) + "/'>" + strings.Repeat("<a href=y>x</a>", 10_000), "[x](https://example.com/ppp", true},
		{"short links to long addresses", strings.Repeat("<a href='?'>x</a>", 10_000), "[x](https://example.com/ppp", true},
		{"formatting that goes on in each paragraph", open + strings.Repeat("<p>x", 4000), "x\n\nx", false},
		{"the same where a style is no text", "a<svg><style><foreignObject>" + open + strings.Repeat("<p>x", 4000), "a", false},
		{"the same where a title is no text", "a<math><title><annotation-xml encoding=text/html>" + open + strings.Repeat("<p>x", 4000), "a", false},
		{"links that show nothing", strings.Repeat("<a href='?'></a>", 10_000) + "x", "x", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, cut, err := reduce(t.Context(), tt.page, long, limit, new(PageLimit))
			runtime.ReadMemStats(&after)
			if err != nil || cut != tt.cut || len(got) > limit || !strings.HasPrefix(got, tt.begins) {
				t.Errorf("%d bytes, cut %v, error %v: %.100q", len(got), cut, err, got)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
				t.Errorf("%d MiB were taken for a page of %d KiB", used, len(tt.page)>>10)
			}
		})
	}
}

// A parser looks at no context, and a stack of elements makes each end tag dear.
func TestAPageIsReadAsLongAsItsTimeLasts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	_, err := html.Parse(newMarkup(ctx, readerFunc(func(p []byte) (int, error) {
		if reads++; reads == 3 {
			cancel()
		}
		return copy(p, strings.Repeat("</p>", len(p)/4)), nil
	})))
	if !errors.Is(err, context.Canceled) || reads > 3 {
		t.Errorf("read %d times, then %v", reads, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, _, err = reduce(late, "<p>x", &url.URL{}, 100, new(PageLimit))
	if typed, ok := errors.AsType[*tool.Error](err); !ok || typed.Type != event.ErrorTimeout {
		t.Errorf("got %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func FuzzReduce(f *testing.F) {
	for _, s := range []string{"<p>a", "<a href=x><a href=y>", "<table><td><table>", "<pre>\n\n", "<li><li>", "<svg><a href=x>", strings.Repeat("<div>", 600), "<b hidden><p></b>x</i>", "<a href=x><marquee><a>y"} {
		f.Add(s)
	}
	base, err := url.Parse("https://example.com/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text, _, err := reduce(t.Context(), page, base, 1000, new(PageLimit))
		if len(text) > 1000 {
			t.Errorf("%d bytes", len(text))
		}
		if err == nil && utf8.ValidString(page) && !utf8.ValidString(text) {
			t.Errorf("%q is no text", text)
		}
		if strings.ContainsRune(text, 0x202e) {
			t.Errorf("%q turns around", text)
		}
	})
}

// FuzzAddress holds that what was judged is what is asked: an address reads the
// same when it is read again, and nothing but its URL is in it.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"http://example.com/", "https://EXAMPLE.com.:443/a%2fb?c#d", "http://[::1]:80/", "http://[::ffff:127.0.0.1]/", "http://user@host/", "http://127.1/",
		"http://bücher.example/ü", "http://a\\@b/", "http://a:80:90/", "//x", "http://\u2488com/", "http://xn--/", "http://a/" + strings.Repeat("é", maxURL/3),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse(text)
		if err != nil {
			return
		}
		read, err := url.Parse(got.url.String()) // whose escapes may make it longer than an address may be
		if err != nil {
			t.Fatalf("%q is %s: %v", text, got.url, err)
		}
		again, err := check(read)
		if err != nil || again.host != got.host || again.port != got.port || again.url.String() != got.url.String() {
			t.Fatalf("%q is %s, and then %+v (%v)", text, got.url, again, err)
		}
		if name, err := egress.CanonicalHost(got.url.Hostname()); err != nil || name != got.host || got.url.User != nil || got.url.Fragment != "" {
			t.Fatalf("%q is %s with host %q (%v)", text, got.url, got.host, err)
		}
	})
}
