package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// table is what a [Redactor] searches for. It does not change after it is made.
type table struct {
	// starts has a bit for every pair of bytes that begins a form, so that text without
	// secrets is skipped with one check per byte.
	starts [1 << 10]uint64
	// firsts has a bit for every byte that begins a form.
	firsts [4]uint64
	forms  map[uint16][]form
}

// form is one notation of a value, and its replacement.
type form struct {
	text []byte
	mark []byte
	// wraps reports that programs break it into lines.
	wraps bool
}

// tableOf returns a table for secrets, none of which is too short. It finds a value
// literally, in JSON, in a URL or an HTML page, in the quotes of a shell or a
// programming language, and in base64 and hex, which may be broken into indented lines.
// It finds the lines of a private key separately. Of other values with several lines it
// finds only the credentials that a name or an address identifies, because the other
// lines may be common to all such files.
func tableOf(secrets []Secret) *table {
	r := &table{forms: map[uint16][]form{}}
	for _, s := range secrets {
		for _, text := range formsOf(s.Value) {
			r.add(form{text: []byte(text), mark: []byte(Reference(s.Name))})
		}
	}
	for _, s := range secrets { // after all values, because one value may be another one's base64
		for _, text := range inHex(s.Value) {
			r.add(form{text: []byte(text), mark: markOf("an encoding", s.Name), wraps: true})
		}
		for _, text := range inBase64(s.Value) {
			r.add(form{text: []byte(text), mark: markOf("an encoding", s.Name), wraps: true})
		}
		for _, text := range twiceInAddress(s.Value) {
			r.add(form{text: []byte(text), mark: markOf("an encoding", s.Name)})
		}
		for _, line := range keyLines(s.Value) {
			r.add(form{text: []byte(line), mark: markOf("a line", s.Name)})
		}
		for _, part := range partsOf(s.Value) {
			r.add(form{text: []byte(part), mark: markOf("a part", s.Name)})
		}
	}
	for _, forms := range r.forms {
		slices.SortStableFunc(forms, func(a, b form) int { return cmp.Compare(len(b.text), len(a.text)) })
	}
	return r
}

func (r *table) add(f form) {
	r.firsts[f.text[0]>>6] |= 1 << (f.text[0] & 63)
	r.addUnder(pair(f.text[0], f.text[1]), f)
	if f.wraps { // a line may also end after the first character
		for _, end := range []byte("\n\r\\") {
			r.addUnder(pair(f.text[0], end), f)
		}
	}
}

func (r *table) addUnder(key uint16, f form) {
	known := func(other form) bool { return bytes.Equal(other.text, f.text) }
	if slices.ContainsFunc(r.forms[key], known) {
		return
	}
	r.starts[key>>6] |= 1 << (key & 63)
	r.forms[key] = append(r.forms[key], f)
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// formsOf lists the notations in which programs write a value.
func formsOf(value string) []string {
	plain, page := inJSON(value, false), inJSON(value, true)
	slashed := strings.ReplaceAll(plain, "/", `\/`)
	forms := []string{
		value, plain, page, inJSON(plain, false), inJSON(plain, true), inJSON(page, false),
		slashed, inJSON(slashed, false), inJSON(slashed, true),
	}
	for _, text := range []string{plain, slashed} {
		ascii := inASCII(text)
		forms = append(forms, ascii, inJSON(ascii, false), unicodeEscapes.ReplaceAllStringFunc(ascii, upperDigits))
	}
	for _, text := range slices.Concat(inPage(value), inQuotes(value)) {
		if text == value {
			continue
		}
		forms = append(forms, text, inJSON(text, false), inJSON(text, true))
	}
	return append(forms, inAddresses(value)...)
}

// longestInAddress bounds a value that is searched for in a URL within a URL, because
// hundreds of notations are possible for a long one.
const longestInAddress = 512

// twiceInAddress returns the notations of a value in a URL that is a part of another
// URL, such as a redirect parameter.
func twiceInAddress(value string) []string {
	if len(value) > longestInAddress {
		return nil
	}
	var forms []string
	for _, once := range inAddresses(value) {
		if once != value {
			forms = append(forms, inAddresses(once)...)
		}
	}
	return forms
}

// markOf returns the replacement for a partial or encoded value. It is not a reference,
// because a model could repeat a reference in a call, which would then get the whole
// value instead of a part, or the plain value instead of base64.
func markOf(what, name string) []byte { return []byte("[redacted: " + what + " of " + name + "]") }

func inHex(value string) []string {
	small := hex.EncodeToString([]byte(value))
	return []string{small, strings.ToUpper(small)}
}

func inBase64(value string) []string {
	var forms []string
	// The text before a value determines its alignment in base64; the characters at
	// both ends also encode neighbouring bits.
	for before := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			inner := text[(before*8+5)/6 : (before+len(value))*8/6]
			if len(inner) >= MinLength {
				forms = append(forms, inner)
			}
		}
	}
	return forms
}

// inPage returns the notations of a text in HTML: programs differ only in the quotes.
func inPage(text string) []string {
	var forms []string
	escaped := html.EscapeString(text)
	for _, single := range []string{"&#39;", "&#x27;", "&#039;", "&apos;", "'"} {
		for _, double := range []string{"&#34;", "&quot;", `"`} {
			forms = append(forms, strings.NewReplacer("&#39;", single, "&#34;", double).Replace(escaped))
		}
	}
	return forms
}

// inQuotes returns a text as shells and programs quote it: "export -p", "set -x", "%q"
// of printf, and literals of programming languages and of SQL.
func inQuotes(text string) []string {
	return []string{
		strings.ReplaceAll(text, `'`, `'\''`), strings.ReplaceAll(text, `'`, `'"'"'`), strings.ReplaceAll(text, `'`, `''`),
		strings.ReplaceAll(text, `\`, `\\`), strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text),
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text),
		shellSigns.ReplaceAllString(text, `\$0`),
	}
}

// shellSigns matches the characters that "%q" of a shell's printf escapes.
var shellSigns = regexp.MustCompile(`[^\w%+,./:=@\x80-\x{10FFFF}-]`)

// inASCII returns JSON text as programs write it that only produce ASCII.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case high != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// unicodeEscapes matches the escapes for characters in JSON.
var unicodeEscapes = regexp.MustCompile(`\\u[0-9a-f]{4}`)

func upperDigits(escape string) string { return escape[:2] + strings.ToUpper(escape[2:]) }

// unreservedSets are the characters that programs do not escape in a part of a URL, in
// addition to letters and digits: Go's queries and paths, Python, and JavaScript's
// encodeURIComponent and encodeURI.
var unreservedSets = []string{"-_.~", "-_.~$&+:=@", "-_.~/", "-_.~!*'()", "-_.~!*'();/?:@&=+$,#"}

// escapes matches the escapes for bytes in a URL.
var escapes = regexp.MustCompile(`%[0-9A-F]{2}`)

// inAddresses returns the notations of a text in a URL.
func inAddresses(text string) []string {
	var forms []string
	for _, unreserved := range unreservedSets {
		form := inAddress(text, unreserved)
		forms = append(forms, form, escapes.ReplaceAllStringFunc(form, strings.ToLower))
		if strings.Contains(form, "%20") {
			forms = append(forms, strings.ReplaceAll(form, "%20", "+"))
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// inAddress returns one notation of a text in a URL.
func inAddress(text, unreserved string) string {
	const digits = "0123456789ABCDEF"
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(unreserved, c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(b)
}

// inJSON returns a text as the content of a JSON string, optionally with HTML escaping.
func inJSON(text string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(text); err != nil {
		return text
	}
	quoted := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return string(quoted[1 : len(quoted)-1])
}

// next returns the offset, the length and the form of the next value; offset -1 for
// none.
func (r *table) next(text []byte, from int) (at, n int, f form) {
	for i := from; i+MinLength <= len(text); i++ {
		key := pair(text[i], text[i+1])
		if !r.starting(key) {
			continue
		}
		if f, n, _ := r.begins(key, text[i:]); f != nil {
			return i, n, *f
		}
	}
	return -1, 0, form{}
}

func (r *table) starting(key uint16) bool { return r.starts[key>>6]&(1<<(key&63)) != 0 }

// begins returns the longest form at the beginning of a text and its length there; open
// reports that more text may complete a longer one.
func (r *table) begins(key uint16, text []byte) (f *form, n int, open bool) {
	forms := r.forms[key]
	for i := range forms {
		f := &forms[i]
		if !f.wraps && len(text) > 3 && (text[2] != f.text[2] || text[3] != f.text[3]) {
			continue // this check excludes most of the dozens of forms
		}
		n, unsure := f.begins(text)
		open = open || unsure
		if n > 0 {
			return f, n, open
		}
	}
	return nil, 0, open
}

func (r *table) redact(text []byte) ([]byte, bool) {
	at, n, f := r.next(text, 0)
	if at < 0 {
		return text, false
	}
	out, done := make([]byte, 0, len(text)), 0
	for ; at >= 0; at, n, f = r.next(text, done) {
		out = append(append(out, text[done:at]...), f.mark...)
		done = at + n
	}
	return append(out, text[done:]...), true
}

func (r *table) redactJSON(doc []byte) ([]byte, bool) {
	if at, _, _ := r.next(doc, 0); at < 0 {
		return doc, false
	}
	out := make([]byte, 0, len(doc))
	changed := false
	for len(doc) > 0 {
		quote := bytes.IndexByte(doc, '"')
		if quote < 0 {
			break
		}
		end := quote + 1 + stringEnd(doc[quote+1:])
		inside, found := r.redactInside(doc[quote+1 : end])
		changed = changed || found
		out = append(append(out, doc[:quote+1]...), inside...)
		doc = doc[end:]
		if len(doc) > 0 { // the closing quote
			out, doc = append(out, doc[0]), doc[1:]
		}
	}
	return append(out, doc...), changed
}

// redactInside is [table.redact] for the content of a JSON string. A value may begin
// or end within an escape, which is then replaced completely, because half an escape is
// invalid.
func (r *table) redactInside(inside []byte) ([]byte, bool) {
	at, n, f := r.next(inside, 0)
	if at < 0 {
		return inside, false
	}
	out, done := make([]byte, 0, len(inside)), 0
	for ; at >= 0; at, n, f = r.next(inside, done) {
		from, to := wholeEscapes(inside, done, at, at+n)
		out = append(append(out, inside[done:from]...), f.mark...)
		done = to
	}
	return append(out, inside[done:]...), true
}

// wholeEscapes extends a range of a string's content to whole escapes; no escape may be
// open at start.
func wholeEscapes(inside []byte, start, from, to int) (int, int) {
	i := start
	for i < to {
		next := i + 1
		if inside[i] == '\\' {
			next = min(i+escapeLength(inside[i:]), len(inside))
		}
		if i < from && from < next {
			from = i
		}
		i = next
	}
	return from, i
}

func escapeLength(escape []byte) int {
	if len(escape) > 1 && escape[1] == 'u' {
		return len(`\u0000`)
	}
	return len(`\n`)
}

// stringEnd returns the offset of a string's closing quote.
func stringEnd(inside []byte) int {
	for i := 0; i < len(inside); i++ {
		switch inside[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(inside)
}
