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

// Redactor takes values out of what is about to be written down. A nil one
// knows none. It is safe for concurrent use.
type Redactor struct {
	// starts has a bit for every pair of bytes that a form begins with, so that
	// a text without secrets is passed over at one look a byte.
	starts [1 << 10]uint64
	// firsts has a bit for every byte that a form begins with.
	firsts [4]uint64
	forms  map[uint16][]form
	// names are those of the values, sorted.
	names []string
}

// form is one way in which a value may be written, and what takes its place.
type form struct {
	text []byte
	mark []byte
	// wraps: programs break it into lines.
	wraps bool
}

// NewRedactor returns a redactor of secrets; nil when there are none. A value
// is found as it is, as JSON, as part of an address or of a page, in the quotes of
// a shell or of a program, in base64 and in hex, which may be broken into indented
// lines. The lines of a private key are found one by one;
// of other values of several lines what a name or an address announces, since the rest of a
// line may say what every file of its kind says.
func NewRedactor(secrets ...Secret) *Redactor {
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s Secret) bool { return len(s.Value) < MinLength })
	if len(secrets) == 0 {
		return nil
	}
	r := &Redactor{forms: map[uint16][]form{}}
	for _, s := range secrets {
		for _, text := range formsOf(s.Value) {
			r.add(form{text: []byte(text), mark: []byte(Reference(s.Name))})
		}
		r.names = append(r.names, s.Name)
	}
	for _, s := range secrets { // after all values, one of which may be what another one is in base64
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
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r
}

// Names are the names of the values, sorted.
func (r *Redactor) Names() []string {
	if r == nil {
		return nil
	}
	return slices.Clone(r.names)
}

func (r *Redactor) add(f form) {
	r.firsts[f.text[0]>>6] |= 1 << (f.text[0] & 63)
	r.addUnder(pair(f.text[0], f.text[1]), f)
	if f.wraps { // a line may end behind the first character, too
		for _, end := range []byte("\n\r\\") {
			r.addUnder(pair(f.text[0], end), f)
		}
	}
}

func (r *Redactor) addUnder(key uint16, f form) {
	known := func(other form) bool { return bytes.Equal(other.text, f.text) }
	if slices.ContainsFunc(r.forms[key], known) {
		return
	}
	r.starts[key>>6] |= 1 << (key & 63)
	r.forms[key] = append(r.forms[key], f)
}

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// formsOf lists the ways in which programs write a value.
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

// longestInAddress bounds a value that is looked for in an address within an address,
// of which there are hundreds of ways to write one full of signs.
const longestInAddress = 512

// twiceInAddress are the forms of a value in an address that is itself a part of
// one, as a page to come back to.
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

// markOf stands for something of a value that is not the value as a text may have
// it. It is no reference, in whose place the value would come when a model repeats it
// in the arguments of a call: the whole for a part, or plain where base64 was.
func markOf(what, name string) []byte { return []byte("[redacted: " + what + " of " + name + "]") }

func inHex(value string) []string {
	small := hex.EncodeToString([]byte(value))
	return []string{small, strings.ToUpper(small)}
}

func inBase64(value string) []string {
	var forms []string
	// What comes before a value decides where its bytes lie in the groups of
	// base64; the characters at both ends hold bits of their neighbours.
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

// inPage is a text as it stands in a page: programs agree on its signs but for
// the quotes.
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

// inQuotes is a text as shells and programs quote it: "export -p", "set -x", "%q"
// of printf, and literals of programming languages and of SQL.
func inQuotes(text string) []string {
	return []string{
		strings.ReplaceAll(text, `'`, `'\''`), strings.ReplaceAll(text, `'`, `'"'"'`), strings.ReplaceAll(text, `'`, `''`),
		strings.ReplaceAll(text, `\`, `\\`), strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text),
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text),
		shellSigns.ReplaceAllString(text, `\$0`),
	}
}

// shellSigns are what "%q" of a shell's printf puts a backslash before.
var shellSigns = regexp.MustCompile(`[^\w%+,./:=@\x80-\x{10FFFF}-]`)

// inASCII is a text of JSON as programs write it that send no other characters.
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

// unicodeEscapes are what stands for characters in JSON.
var unicodeEscapes = regexp.MustCompile(`\\u[0-9a-f]{4}`)

func upperDigits(escape string) string { return escape[:2] + strings.ToUpper(escape[2:]) }

// unreservedSets are what programs leave as it is in a part of an address, beside
// letters and digits: Go's queries and paths, Python and JavaScript's
// encodeURIComponent and encodeURI.
var unreservedSets = []string{"-_.~", "-_.~$&+:=@", "-_.~/", "-_.~!*'()", "-_.~!*'();/?:@&=+$,#"}

// escapes are what stands for bytes in an address.
var escapes = regexp.MustCompile(`%[0-9A-F]{2}`)

// inAddresses are the ways in which a text stands in an address.
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

// inAddress is a text as it stands in an address.
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

// inJSON is a text as it stands within a JSON string, which may be one that is
// fit to stand in a page.
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

// next returns where the next value begins, how long it is, and in which form;
// -1 for none.
func (r *Redactor) next(text []byte, from int) (at, n int, f form) {
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

func (r *Redactor) starting(key uint16) bool { return r.starts[key>>6]&(1<<(key&63)) != 0 }

// begins says which form stands at the beginning of a text, the longest one
// where there are several, and how much of the text it takes up; open says that a
// longer one still may, if more text follows.
func (r *Redactor) begins(key uint16, text []byte) (f *form, n int, open bool) {
	forms := r.forms[key]
	for i := range forms {
		f := &forms[i]
		if !f.wraps && len(text) > 3 && (text[2] != f.text[2] || text[3] != f.text[3]) {
			continue // one check decides most, and one value has dozens of forms
		}
		n, unsure := f.begins(text)
		open = open || unsure
		if n > 0 {
			return f, n, open
		}
	}
	return nil, 0, open
}

// Redact puts references in the place of the values in a text, and says
// whether there were any. Without one it returns the text itself, and
// allocates nothing.
func (r *Redactor) Redact(text []byte) ([]byte, bool) {
	if r == nil {
		return text, false
	}
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

// RedactString is [Redactor.Redact] of a string.
func (r *Redactor) RedactString(text string) string {
	if r == nil {
		return text
	}
	if out, found := r.Redact([]byte(text)); found {
		return string(out)
	}
	return text
}

// RedactJSON is [Redactor.Redact] of JSON: only the insides of its strings
// change, so that it stays JSON of the same shape.
func (r *Redactor) RedactJSON(doc []byte) ([]byte, bool) {
	if r == nil {
		return doc, false
	}
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

// redactInside is [Redactor.Redact] of the inside of a JSON string. What is found
// may begin or end amid an escape, which then goes with it: half of one is no JSON.
func (r *Redactor) redactInside(inside []byte) ([]byte, bool) {
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

// wholeEscapes widens a range of a string's inside to the escapes that it begins
// and ends in; no escape stands open at start.
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

// stringEnd is where a string's closing quote stands.
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
