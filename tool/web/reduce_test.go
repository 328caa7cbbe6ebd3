package web

import (
	"net/url"
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
		{"nothing", "", ""},
		{"broken", "<p<b>x</i></p></p></table>y<", "x\n\ny<"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := reduce(tt.page, base); err != nil || got != tt.want {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func FuzzReduce(f *testing.F) {
	for _, s := range []string{"<p>a", "<a href=x><a href=y>", "<table><td><table>", "<pre>\n\n", "<li><li>", "<svg><a href=x>", strings.Repeat("<b>", 600)} {
		f.Add(s)
	}
	base, err := url.Parse("https://example.com/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, page string) {
		text, err := reduce(page, base)
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
