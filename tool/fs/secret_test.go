package fs_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/tool"
)

// A long line is cut. A cut through a secret would leave half of it, which no redactor
// finds.
func TestTheCutOfALineLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "sk-0123456789-abcdefghij-0123456789"
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
	p := newPlace(t, nil)
	for at := range 2100 {
		if at > 300 && at < 1930 {
			continue
		}
		p.put("f", strings.Repeat("é", at/2)+strings.Repeat(".", at%2)+"KEY="+secret+strings.Repeat("ü", 200)+"\nnext\n")
		for name, args := range map[string]string{
			"fs.read": `{"path":"f"}`, "fs.grep": `{"pattern":"KEY=","path":"f"}`, "fs.grep, of what is before it": `{"pattern":"^.","path":"f"}`,
			"fs.grep, of the secret": `{"pattern":"0123456789$|-abc|ü$","path":"f"}`,
		} {
			called, _, _ := strings.Cut(name, ",")
			found, _ := p.set.Lookup(called)
			r, err := found.Run(t.Context(), tool.Call{ID: "c", Args: json.RawMessage(args), Redact: redact})
			if err != nil {
				t.Fatal(err)
			}
			if left := redact(r.Output); strings.Contains(left, "sk-") || strings.Contains(left, "0123") || strings.Contains(left, "789") {
				t.Fatalf("%s, at %d: %s", name, at, left)
			}
			if name == "fs.read" && !strings.Contains(r.Output, "next") || name == "fs.grep" && !strings.Contains(r.Output, "KEY=") {
				t.Fatalf("%s, at %d: %s", name, at, r.Output)
			}
		}
	}
}

// The file of a secret may have 64 KiB, and its base64 a third more.
func TestTheCutOfALineLeavesNoBeginningOfALongSecret(t *testing.T) {
	p := newPlace(t, nil)
	for name, secret := range map[string]string{
		"as long as one may be": strings.Repeat("sk-0123456789abc", 64<<10/16),
		"that in base64":        base64.StdEncoding.EncodeToString([]byte(strings.Repeat("sk-0123456789abc", 64<<10/16))),
		"that in hex":           hex.EncodeToString([]byte(strings.Repeat("sk-0123456789abc", 64<<10/16))),
	} {
		redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
		for _, after := range []int{0, 10, 1 << 20} {
			line := "token: " + secret + strings.Repeat(".", after)
			p.put("f", line+"\nnext\n")
			r := p.redacted("fs.read", `{"path":"f"}`, redact)
			if want := fmt.Sprintf("     1\ttoken: … [7 of the line's %d bytes]\n     2\tnext\n", len(line)); r != want {
				t.Errorf("%s, with %d bytes after it: %.200q, want %q", name, after, r, want)
			}
		}
	}
}

// Redaction makes a text shorter, and so brings into view what was beyond it.
func TestTheCutOfALineLeavesNoHalfOfALaterSecret(t *testing.T) {
	p := newPlace(t, nil)
	token := func(n int) string { return strings.Repeat(fmt.Sprintf("sk-%05d", n), 125) }
	redact := func(text string) string {
		for n := range 30 {
			text = strings.ReplaceAll(text, token(n), "(a secret)")
		}
		return text
	}
	var line strings.Builder
	for n := range 30 {
		line.WriteString(token(n) + " ")
	}
	for shift := 0; shift < 1000; shift += 9 {
		p.put("f", strings.Repeat(".", shift)+line.String())
		if left := redact(p.redacted("fs.read", `{"path":"f"}`, redact)); strings.Contains(left, "sk-") {
			t.Fatalf("shifted by %d: %.300s", shift, left)
		}
	}
}

// The model sees the file as it is, with or without secrets.
func TestTheSizesOfACutLineAreThoseInTheFile(t *testing.T) {
	p := newPlace(t, nil)
	const secret = "sk-0123456789-abcdefghij-0123456789"
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
	for _, size := range []int{3000, 1 << 20} {
		p.put("f", secret+strings.Repeat("x", size-len(secret)))
		r := p.redacted("fs.read", `{"path":"f"}`, redact)
		if want := fmt.Sprintf("x… [2000 of the line's %d bytes]\n", size); !strings.HasSuffix(r, want) {
			t.Errorf("%d bytes: %q, want %q at its end", size, r[len(r)-60:], want)
		}
	}
}

// redacted is what a call gives whose run knows secrets, before the engine takes
// those out.
func (p pathFunc) redacted(name, args string, redact func(string) string) string {
	p.t.Helper()
	found, _ := p.set.Lookup(name)
	r, err := found.Run(p.t.Context(), tool.Call{ID: "c", Args: json.RawMessage(args), Redact: redact})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Output
}
