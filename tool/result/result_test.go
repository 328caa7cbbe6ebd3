package result_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/internal/search"
	"github.com/pawlrun/pawl/tool/result"
)

// kept is a run that keeps one result, under the handle "h".
type kept struct {
	content   string
	untrusted bool
}

func (k kept) Read(_ context.Context, handle string) (tool.Stored, error) {
	if handle != "h" {
		return tool.Stored{}, &tool.Error{Type: event.ErrorNotFound, Message: "no such handle"}
	}
	return tool.Stored{Content: []byte(k.content), Untrusted: k.untrusted}, nil
}

// read calls the tool with JSON arguments, in a run that shows a model shown
// characters of a result.
func read(k kept, shown int, args string) (tool.Result, error) {
	return result.New().Run(context.Background(), tool.Call{Args: json.RawMessage(args), MaxResultChars: shown, Results: k})
}

// page splits an answer into the line above a page, the offset that the line
// names as the next (-1 at the end), and the page.
func page(t *testing.T, answer string) (header string, next int, body string) {
	t.Helper()
	header, body, ok := strings.Cut(answer, "\n")
	if !ok {
		t.Fatalf("no line above the page: %q", answer)
	}
	if strings.HasSuffix(header, "; this is the end]") {
		return header, -1, body
	}
	_, digits, _ := strings.Cut(header, "; the next offset is ")
	next, err := strconv.Atoi(strings.TrimSuffix(digits, "]"))
	if err != nil {
		t.Fatalf("the line %q names no next offset", header)
	}
	return header, next, body
}

// pages reads a result from its start to its end.
func pages(t *testing.T, k kept, shown int, args string) (bodies []string) {
	t.Helper()
	for next := 0; next >= 0; {
		r, err := read(k, shown, fmt.Sprintf(args, next))
		if err != nil {
			t.Fatal(err)
		}
		before := next
		var body string
		if _, next, body = page(t, r.Output); next >= 0 && next <= before {
			t.Fatalf("from offset %d on to offset %d", before, next)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

func TestAPageSaysWhereItStandsAndWhereToGoOn(t *testing.T) {
	for _, c := range []struct{ name, content, args, want string }{
		{"the first", "abcdefghij", `{"handle":"h","limit":4}`, "[characters 0 to 4 of 10; the next offset is 4]\nabcd"},
		{"one in the middle", "abcdefghij", `{"handle":"h","offset":4,"limit":4}`, "[characters 4 to 8 of 10; the next offset is 8]\nefgh"},
		{"the last", "abcdefghij", `{"handle":"h","offset":8,"limit":4}`, "[characters 8 to 10 of 10; this is the end]\nij"},
		{"all that can be shown", "abcdefghij", `{"handle":"h"}`, "[characters 0 to 10 of 10; this is the end]\nabcdefghij"},
		{"behind the end", "abc", `{"handle":"h","offset":3}`, "[characters 3 to 3 of 3; this is the end]\n"},
		{"counted in characters", "äöü€😀", `{"handle":"h","offset":1,"limit":3}`, "[characters 1 to 4 of 5; the next offset is 4]\nöü€"},
		{"bytes that are no text", "a\xff\xfeb", `{"handle":"h","offset":1,"limit":2}`, "[characters 1 to 3 of 4; the next offset is 3]\n\xff\xfe"},
		{"a number as some models write it", "abc", `{"handle":"h","offset":1.0,"limit":1e0}`, "[characters 1 to 2 of 3; the next offset is 2]\nb"},
	} {
		r, err := read(kept{content: c.content}, 30_000, c.args)
		if err != nil || r.Output != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, r.Output, err, c.want)
		}
	}
}

// A page does not show a part of base64: it ends before one, and one that fits in no page
// is left out.
func TestAPageDoesNotCutBase64(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgo1", 50) // 600 characters
	k := kept{content: "before: " + image + " between " + image + `", after`}
	for _, c := range []struct{ args, want string }{
		{`{"handle":"h","limit":100}`, "[characters 0 to 8 of 1225; the next offset is 8]\nbefore: "},
		{`{"handle":"h","offset":8,"limit":100}`, "[characters 8 to 608 of 1225; the next offset is 608]\n[… 600 characters of base64 left out …]"},
		{`{"handle":"h","offset":8,"limit":600}`, "[characters 8 to 608 of 1225; the next offset is 608]\n" + image},
		{`{"handle":"h","offset":8,"limit":800}`, "[characters 8 to 617 of 1225; the next offset is 617]\n" + image + " between "},
		{`{"handle":"h","offset":300,"limit":800}`, "[characters 300 to 608 of 1225; the next offset is 608]\n[… 308 characters of base64 left out …]"},
		{`{"handle":"h","offset":608,"limit":800}`, "[characters 608 to 1225 of 1225; this is the end]\n between " + image + `", after`},
	} {
		if r, err := read(k, 30_000, c.args); err != nil || r.Output != c.want {
			t.Errorf("%s: %q, %v; want %q", c.args, r.Output, err, c.want)
		}
	}
}

func TestUnreadableResultIsReportedWithReason(t *testing.T) {
	for _, c := range []struct {
		args string
		kind event.ErrorType
		want string
	}{
		{`{"handle":"other"}`, event.ErrorNotFound, "no such handle"},
		{`{"handle":"h","offset":-1}`, event.ErrorInvalidArgs, "offset must not be negative, and is -1"},
		{`{"handle":"h","limit":-1}`, event.ErrorInvalidArgs, "limit must not be negative, and is -1"},
		{`{"handle":"h","offset":4}`, event.ErrorInvalidArgs, "offset 4 is beyond the end: the result has 3 characters"},
		{`{"handle":"h","pattern":"` + strings.Repeat("a", 1001) + `"}`, event.ErrorInvalidArgs, "pattern: it has 1001 bytes; at most 1000 are possible"},
		{`{"handle":"h","pattern":"("}`, event.ErrorInvalidArgs, "pattern: error parsing regexp: missing closing ): `(`"},
	} {
		_, err := read(kept{content: "abc"}, 0, c.args)
		typed, ok := errors.AsType[*tool.Error](err)
		if !ok || typed.Type != c.kind || typed.Message != c.want {
			t.Errorf("%s: %v, want %s %q", c.args, err, c.kind, c.want)
		}
	}
	_, err := result.New().Run(t.Context(), tool.Call{Args: json.RawMessage(`{"handle":"h"}`)})
	if typed, ok := errors.AsType[*tool.Error](err); !ok || typed.Type != event.ErrorNotFound {
		t.Errorf("outside a run: %v", err)
	}
}

func TestASearchGivesLinesWithWhereTheyAre(t *testing.T) {
	content := "first\r\nä second\nthird\n" + strings.Repeat("é", 500) + "needle" + strings.Repeat("x", 500) + "\nlast second"
	r, err := read(kept{content: content}, 30_000, `{"handle":"h","pattern":"sec|needle"}`)
	want := "[3 matching lines in characters 0 to 1040 of 1040; this is the end]\n" +
		"line 2, offset 9: ä second\n" +
		"line 4, offset 522: …" + strings.Repeat("é", 30) + "needle" + strings.Repeat("x", 234) + "…\n" +
		"line 5, offset 1034: last second\n"
	if err != nil || r.Output != want {
		t.Errorf("%v\n got %q\nwant %q", err, r.Output, want)
	}
	r, err = read(kept{content: content}, 30_000, `{"handle":"h","pattern":"nothing"}`)
	if err != nil || r.Output != "[0 matching lines in characters 0 to 1040 of 1040; this is the end]\n" {
		t.Errorf("no match: %q, %v", r.Output, err)
	}
}

func TestASearchGoesOnWhereItStoppedAndGivesEachLineOnce(t *testing.T) {
	var content strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&content, "line %d is %s\n", i, []string{"even", "odd"}[i%2])
	}
	var lines []string
	answers := pages(t, kept{content: content.String()}, 2000, `{"handle":"h","pattern":"odd$","offset":%d}`)
	for _, body := range answers {
		if n := utf8.RuneCountInString(body); n > 2000 {
			t.Errorf("one answer has %d characters", n)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(body, "\n"), "\n")...)
	}
	if len(lines) != 500 || len(answers) < 6 {
		t.Fatalf("%d lines in %d answers", len(lines), len(answers))
	}
	for i, line := range lines {
		if want := fmt.Sprintf("line %d, ", 2*i+2); !strings.HasPrefix(line, want) || !strings.HasSuffix(line, "is odd") {
			t.Errorf("line %d of the answers is %q", i, line)
		}
	}
}

// rows: HAR-6
func TestAPageIsNeverLongerThanWhatIsShown(t *testing.T) {
	k := kept{content: strings.Repeat("äb", 100_000)}
	for _, shown := range []int{200, 1000, 30_000} {
		for _, args := range []string{`{"handle":"h"}`, `{"handle":"h","limit":99999999}`, `{"handle":"h","pattern":"b"}`} {
			r, err := read(k, shown, args)
			// One matching line is given even where it is longer than all that is shown.
			room := shown
			if strings.Contains(args, "pattern") {
				room = max(shown, 500)
			}
			if n := utf8.RuneCountInString(r.Output); err != nil || n > room {
				t.Errorf("%d characters where %d are shown: %v", n, shown, err)
			}
		}
	}
}

func TestWhatCameFromOutsideStaysUntrusted(t *testing.T) {
	for _, args := range []string{`{"handle":"h"}`, `{"handle":"h","pattern":"a"}`} {
		if r, err := read(kept{content: "a", untrusted: true}, 0, args); err != nil || !r.Untrusted {
			t.Errorf("%s: untrusted is %v (%v)", args, r.Untrusted, err)
		}
	}
}

// FuzzPages: whatever the content and the size of a page, the pages make up the
// content, none is longer than asked for, and each is whole characters.
func FuzzPages(f *testing.F) {
	f.Add("hello world", 3, 30_000)
	f.Add("äöü€😀\r\n", 1, 0)
	f.Add("\xe2\xe2\x82\xac\xf0\x90\x80\x00\n", 2, 121)
	f.Add("", 7, 1)
	f.Fuzz(func(t *testing.T, content string, limit, shown int) {
		limit, shown = limit&1023, shown&0xffff
		if len(content) > 4096 {
			return
		}
		var whole strings.Builder
		for _, body := range pages(t, kept{content: content}, shown, `{"handle":"h","offset":%d,"limit":`+strconv.Itoa(limit)+`}`) {
			if strings.HasSuffix(body, " characters of base64 left out …]") {
				return
			}
			if n := utf8.RuneCountInString(body); limit > 0 && n > limit {
				t.Fatalf("a page of %d characters where %d were asked for", n, limit)
			}
			if utf8.ValidString(content) && !utf8.ValidString(body) {
				t.Fatalf("the page %q cuts a character", body)
			}
			whole.WriteString(body)
		}
		if whole.String() != content {
			t.Errorf("the pages of %q are %q", content, whole.String())
		}
	})
}

var place = regexp.MustCompile(`(?m)^line (\d+), offset (\d+): `)

// FuzzSearch: a search ends, and reading at an offset that it gives begins with
// a match, in the line that it names.
func FuzzSearch(f *testing.F) {
	f.Add("one\ntwo\nthree", "t.")
	f.Add(strings.Repeat("äx", 400)+"needle", "needle|x")
	f.Add("\xff\xfe\nabc\xff", "[^a]c")
	f.Add("a\n\n\nb", "")
	f.Fuzz(func(t *testing.T, content, pattern string) {
		re, err := regexp.Compile(pattern)
		if err != nil || pattern == "" || len(pattern) > search.MaxPattern || len(content) > 4096 || strings.ContainsAny(content+pattern, "^$\\\r") {
			return // a match that depends on what stands around it
		}
		quoted, _ := json.Marshal(pattern)
		if !utf8.ValidString(pattern) {
			return
		}
		args := `{"handle":"h","offset":%d,"pattern":` + strings.ReplaceAll(string(quoted), "%", "%%") + `}`
		for _, body := range pages(t, kept{content: content}, 2000, args) {
			m := place.FindStringSubmatch(body)
			if m == nil {
				continue
			}
			line, _ := strconv.Atoi(m[1])
			offset, _ := strconv.Atoi(m[2])
			at := 0
			for range offset {
				_, size := utf8.DecodeRuneInString(content[at:])
				at += size
			}
			rest, _, _ := strings.Cut(content[at:], "\n")
			if loc := re.FindStringIndex(rest); loc == nil || loc[0] != 0 {
				t.Errorf("%q does not begin with a match of %q", rest, pattern)
			}
			if got := 1 + strings.Count(content[:at], "\n"); got != line {
				t.Errorf("offset %d is in line %d, not %d", offset, got, line)
			}
		}
	})
}

// BenchmarkPage reads a page from the middle of five megabytes.
func BenchmarkPage(b *testing.B) {
	k := kept{content: strings.Repeat("a line of output, forty characters long\n", 131_072)}
	stored := tool.Stored{Content: []byte(k.content)}
	t := result.New()
	c := tool.Call{Args: json.RawMessage(`{"handle":"h","offset":2500000}`), MaxResultChars: 30_000, Results: fixed(stored)}
	for b.Loop() {
		if _, err := t.Run(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

type fixed tool.Stored

func (f fixed) Read(context.Context, string) (tool.Stored, error) { return tool.Stored(f), nil }

func TestTheToolDeclaresThatItChangesNothing(t *testing.T) {
	r := result.New()
	if r.Effect != event.EffectPure || !r.ReadOnly || !r.Concurrent {
		t.Errorf("effect %s, read-only %v, concurrent %v", r.Effect, r.ReadOnly, r.Concurrent)
	}
	args := json.RawMessage(`{"handle":"sha256-0123456789abcdef","offset":7}`)
	if got := r.Access(args); len(got) != 1 || got[0].Write || got[0].Key != "result:sha256-0123456789abcdef" {
		t.Errorf("it touches %+v", got)
	}
	if got := r.Describe(args); got != "read sha256-01234567… from 7" {
		t.Errorf("it is described as %q", got)
	}
}

// A few characters of a pattern can keep the search of one line busy for hours.
func TestASearchEndsWithItsCall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	k := kept{content: strings.Repeat("x", 1<<20)}
	r, err := result.New().Run(ctx, tool.Call{Args: json.RawMessage(`{"handle":"h","pattern":".{0,1000}z"}`), Results: k})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %q, %v", r.Output, err)
	}
}

func TestTheSchemaIsMadeOnceForAllAgents(t *testing.T) {
	a, b := result.New(), result.New()
	if &a.Schema[0] != &b.Schema[0] {
		t.Error("each agent has a schema of its own, which is compiled anew")
	}
	if a.Labels == b.Labels {
		t.Error("what one program says of the tool's labels is said of all")
	}
}
