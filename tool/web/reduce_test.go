package web

import (
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/egress"
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
		{"a hidden word that is not closed", `<p>a <b hidden>1<p>b</b>c`, "a\n\nc"},
		{"formatting that is nested deep", strings.Repeat("<b>", 600) + "a", "a"},
		{"a link around formatting", `<a href=/x><b>a</b></a>`, "[a](https://example.com/x)"},
		{"a link that is not closed", `<p><a href=/x>a<p>b <a href=/y>c`, "[a\n\nb](https://example.com/x) [c](https://example.com/y)"},
		{"a link around a block", `a<a href=/x><div>b</div></a>c`, "a\n[b](https://example.com/x)\nc"},
		{"an address with entities and without", `<a href="?a=1&amp;b=2&copy=3&lt">x</a>`, "[x](https://example.com/dir/page?a=1&b=2&copy=3<)"},
		{"text between rows", "<table>a<tr><td>b</table>c", "a\nb\n\nc"},
		{"a closed dialog", "a<dialog>b</dialog><dialog open>c</dialog>d<div popover>e</div>", "acd"},
		{"a page that hides itself", "<body hidden>a", ""},
		{"a page of frames", "<html><frameset><frame src=x>a<noframes>b</noframes></frameset>c", ""},
		{"more than one way to hide", `<p style="opacity:0.0">1<p style="font-size: 0em;">2<p style="visibility:collapse">3<p style="opacity:.5;font-size:0.8em">a`, "a"},
		{"hidden formatting around a cell", "<b hidden><table><tr><td>1</b></table></b>a", "a"},
		// What a browser takes for something else than its beginning looks like.
		{"a comment that is none for long", "a<!-->b<!--->c<!-- x --!>d<!-- - -- > -->e</>f</ x>g<!x>h<?x>i", "abcdefghi"},
		{"a script in a script", "<script><!-- <script> </script> 1 --> </script>a<script><!-- </script>b", "ab"},
		{"an end tag with attributes", `<script>1</script x=">">a<style>2</styles></style/>b`, "ab"},
		{"text in SVG", "<svg><![CDATA[ > </svg> 1 ]]><title>2</title></svg>a<svg><style>3</svg>b<svg>4<p>c", "ab\n\nc"},
		{"cells in a template", "<template><tr><td>1</td></tr>2</template>a", "a"},
		{"an element of another name", "<my-box hidden>1</my-box><my-box>a</my-box>", "a"},
		{"a tag that breaks off", "a<p title='", "a"},
		{"nothing", "", ""},
		{"broken", "<p<b>x</i></p></p></table>y<", "x\n\ny<"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, cut, err := reduce(strings.NewReader(tt.page), reading{base: base, limit: 1 << 20}); err != nil || cut || got != tt.want {
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
		{"short links to long addresses", strings.Repeat("<a href='?'>x</a>", 10_000), "[x](https://example.com/ppp", true},
		{"formatting that goes on in each paragraph", open + strings.Repeat("<p>x", 4000), "x\n\nx", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, cut, err := reduce(strings.NewReader(tt.page), reading{base: long, limit: limit})
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

func FuzzReduce(f *testing.F) {
	for _, s := range []string{"<p>a", "<a href=x><a href=y>", "<table><td><table>", "<pre>\n\n", "<li><li>", "<svg><a href=x>", strings.Repeat("<div>", 600), "<b hidden><p></b>x</i>", "<a href=x><marquee><a>y"} {
		f.Add(s)
	}
	base, err := url.Parse("https://example.com/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text, _, err := reduce(strings.NewReader(page), reading{base: base, limit: 1000})
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
		"http://bücher.example/ü", "http://a\\@b/", "http://a:80:90/", "//x", "http://\u2488com/", "http://xn--/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parse(text)
		if err != nil {
			return
		}
		again, err := parse(got.url.String())
		if err != nil || again.host != got.host || again.port != got.port || again.url.String() != got.url.String() {
			t.Fatalf("%q is %s, and then %+v (%v)", text, got.url, again, err)
		}
		if name, err := egress.CanonicalHost(got.url.Hostname()); err != nil || name != got.host || got.url.User != nil || got.url.Fragment != "" {
			t.Fatalf("%q is %s with host %q (%v)", text, got.url, got.host, err)
		}
	})
}
