package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/secret"
)

const service = "sk-service-0123456789abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ-and-the-rest-of-it"

// behind breaks a text into lines of a width, with what a program prints before each.
func behind(text string, width int, prefix func(line int) string) string {
	var b strings.Builder
	for line := 1; text != ""; line++ {
		n := min(width, len(text))
		b.WriteString(prefix(line) + text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

// left is a piece of a secret that is still in a text.
func left(text, secret string, length int) string {
	for i := range len(secret) - length + 1 {
		if piece := secret[i : i+length]; strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

func inJSON(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text)
}

// What grep -rn, grep -r, git grep, grep -C, git blame and journals print before a line.
func TestAnEncodedValueIsFoundBehindTheNamesOfFiles(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	for name, prefix := range map[string]func(int) string{
		"grep -rn":  func(n int) string { return fmt.Sprintf("etc/app-2/keys:old/c2st 1.b64:%d:", n) },
		"grep -r":   func(int) string { return "./secret.b64:" },
		"git grep":  func(n int) string { return fmt.Sprintf("HEAD:a/b.txt:%d:", n) },
		"grep -C":   func(n int) string { return fmt.Sprintf("a.b64-%d-", n) },
		"git blame": func(n int) string { return fmt.Sprintf("^1a2b3c4 (Ann 2026-11-22 18:00:00 +0000 %d) ", n) },
		"a journal": func(n int) string { return fmt.Sprintf("2026-11-22T18:00:%02dZ host app[7]: ", n) },
	} {
		for before := range 90 {
			data := strings.Repeat("#", before) + service + "\n##"
			for _, encoded := range []string{base64.StdEncoding.EncodeToString([]byte(data)), base64.URLEncoding.EncodeToString([]byte(data)), hex.EncodeToString([]byte(data))} {
				for _, width := range []int{76, 64, 60} {
					text := behind(encoded, width, prefix)
					for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), inJSON(text), inJSON(inJSON(text))} {
						// Behind one or two of its characters at the end of a line nothing is known for it.
						whole := r.RedactString(encoded)
						start := strings.Index(whole, "[")
						if at := start % width; start < 0 || at > width-3 {
							continue
						}
						got := r.RedactString(text)
						if piece := left(got, encoded[start:len(encoded)-8], 8); piece != "" {
							t.Fatalf("%s: %q is left of %q in %q", name, piece, text, got)
						}
					}
				}
			}
		}
	}
}

// xxd prints a text as xxd does, in capitals or not, in groups of some bytes.
func xxd(text string, width, group int, format string) string {
	var b strings.Builder
	for at := 0; at < len(text); at += width {
		line := text[at:min(len(text), at+width)]
		bytes, beside := "", ""
		for i := range len(line) {
			if i > 0 && i%group == 0 {
				bytes += " "
			}
			bytes += fmt.Sprintf(format, line[i])
			if line[i] < ' ' || line[i] > '~' {
				beside += "."
			} else {
				beside += line[i : i+1]
			}
		}
		fmt.Fprintf(&b, "%08x: %-*s  %s\n", at, width*2+(width+group-1)/group-1, bytes, beside)
	}
	return b.String()
}

// od prints a text as od -tx1 does.
func od(text, place string) string {
	var b strings.Builder
	for at := 0; at < len(text); at += 16 {
		if place != "" {
			fmt.Fprintf(&b, place, at)
		}
		fmt.Fprintf(&b, " % x\n", text[at:min(len(text), at+16)])
	}
	return b.String()
}

// numbered gives the lines of a text numbers.
func numbered(text, number string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, number+"%s", strings.Count(b.String(), "\n")+1, line)
	}
	return b.String()
}

func TestAValueIsFoundInADumpWithTheTextBesideIt(t *testing.T) {
	const service = service + ` "quoted\word" <ä>` // what JSON writes otherwise stands beside it, too
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	for name, dump := range map[string]func(string) string{
		"hexdump -C": func(s string) string { return hex.Dump([]byte(s)) },
		"xxd":        func(s string) string { return xxd(s, 16, 2, "%02x") },
		"xxd -u":     func(s string) string { return xxd(s, 16, 2, "%02X") },
		"xxd -c 32":  func(s string) string { return xxd(s, 32, 4, "%02x") },
		"xxd -g 1":   func(s string) string { return xxd(s, 16, 1, "%02x") },
		"cat -n":     func(s string) string { return numbered(hex.Dump([]byte(s)), "%6d\t") },
		"grep -n":    func(s string) string { return numbered(xxd(s, 16, 2, "%02x"), "%d:") },
		"od":         func(s string) string { return od(s, "%07o") },
		"od -A x":    func(s string) string { return od(s, "%06x") },
		"od -An":     func(s string) string { return od(s, "") },
	} {
		for before := range 40 {
			for after := range 20 {
				data := strings.Repeat("#", before) + service + strings.Repeat("~", after) + "\n"
				whole := dump(data)
				for _, text := range []string{whole, inJSON(whole)} {
					got := r.RedactString(text)
					plain, bytes := left(got, service, 4), left(strings.ToLower(strings.ReplaceAll(got, " ", "")), hex.EncodeToString([]byte(service)), 8)
					if plain != "" || bytes != "" || !strings.Contains(got, "[redacted: an encoding of S]") {
						t.Fatalf("%s: %q or %q is left of\n%s\nin\n%s", name, plain, bytes, text, got)
					}
				}
			}
		}
	}
}

func TestWhatLooksLikeAPieceOfAnEncodedValueStays(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	coded, inHex := base64.StdEncoding.EncodeToString([]byte(service)), hex.EncodeToString([]byte(service))
	for name, text := range map[string]string{
		"a dump of something else":   hex.Dump([]byte(service[:40] + " is another one, and goes on with other words")),
		"a beginning behind a name":  "a:1:" + coded[:60] + "\na:2:" + coded[:60] + "\n",
		"a rest that is far away":    "a:1:" + coded[:60] + "\n" + strings.Repeat("a", 300) + ":2:" + coded[60:],
		"a rest two lines later":     "a:1:" + coded[:60] + "\na:2:another line\na:3:" + coded[60:],
		"bytes far apart":            "73" + strings.Repeat(" ", 70) + "6b 2d",
		"a table of numbers":         "73  6b  2d\n0000 73  65\n",
		"a place without bytes":      inHex[:32] + "  |sk-service-01234|\n00000010  |\n",
		"text that is no dump's end": inHex[:32] + "  " + strings.Repeat("x", 200) + "\n00000010  " + inHex[32:],
	} {
		if got := r.RedactString(text); got != text {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
	if got := r.RedactString(inHex[:2] + " " + inHex[2:] + " and  more\n"); got != "[redacted: an encoding of S] and  more\n" {
		t.Errorf("a text behind bytes was taken for one beside them: %q", got)
	}
}

// A dump is looked at to the end of its line, and behind what JSON has for the ends
// of more of them. Sixteen MiB of a program's output were looked at for minutes.
func TestColumnsThatEndAgainAndAgainAreLookedAtOnce(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "S", Value: service})
	columns := strings.Repeat(hex.EncodeToString([]byte(service[:1]))+"  ", 20)
	redacting := func(unit string) time.Duration {
		text := strings.Repeat(unit, 1<<20/len(unit))
		began := processor.Time(t)
		if got := r.RedactString(text); got != text {
			t.Errorf("%.40q has become %.40q", text, got)
		}
		return processor.Time(t) - began
	}
	plain := redacting(columns)
	for _, end := range []string{` \n`, `\r`} {
		if took := redacting(columns + strings.Repeat(end, 40)); took > 6*plain {
			t.Errorf("with %q it takes %s, without %s", end, took, plain)
		}
	}
}
