package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/host/secret"
)

// streamed gives a text to a stream in pieces of the lengths that cuts says, over
// and over, or byte by byte, and returns all that it showed.
func streamed(s *secret.Stream, text string, cuts []byte) string {
	var shown strings.Builder
	for i := 0; text != ""; i++ {
		n := 1
		if len(cuts) > 0 {
			n = min(int(cuts[i%len(cuts)]), len(text))
		}
		shown.WriteString(s.Write(text[:n]))
		text = text[n:]
	}
	shown.WriteString(s.End())
	return shown.String()
}

func anyPositive(cuts []byte) bool { return strings.Trim(string(cuts), "\x00") != "" }

func TestSecretIsRedactedAcrossAnyCutOfAStream(t *testing.T) {
	r := secret.NewRedactor(secret.Secret{Name: "DB", Value: value}, secret.Secret{Name: "LONG", Value: value + "-and-more"})
	for name, text := range map[string]string{
		"amid a text":        "the password is " + value + ", and that is all",
		"the shorter of two": value + "-and-mo",
		"the longer of two":  value + "-and-more",
		"after a beginning":  value[:6] + value,
		"twice":              value + value,
		"in base64":          base64.StdEncoding.EncodeToString([]byte("user:" + value + "\n")),
		"in lines of base64": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte("user:"+value+"\n")), "c", "c\r\n  "),
		"in numbered lines":  strings.ReplaceAll(hex.EncodeToString([]byte(value)), "7", "7\n    12\t"),
		"in lines of JSON":   strings.ReplaceAll(hex.EncodeToString([]byte(value)), "7", `7\n12\t`),
		"its digits last":    hex.EncodeToString([]byte(value))[:len(value)] + "\n" + hex.EncodeToString([]byte(value))[len(value):],
		"such lines in JSON": inJSON(strings.ReplaceAll(hex.EncodeToString([]byte(value)), "7", "7\n 3\t")) + "!",
		"none":               "nothing but a beginning: " + value[:6],
	} {
		want := r.RedactString(text)
		for cut := range len(text) {
			s := secret.NewStream(r)
			got := s.Write(text[:cut])
			if !strings.HasPrefix(want, got) {
				t.Fatalf("%s, cut at %d: showed %q, of %q", name, cut, got, want)
			}
			if got += s.Write(text[cut:]) + s.End(); got != want {
				t.Fatalf("%s, cut at %d: showed %q, want %q", name, cut, got, want)
			}
		}
	}
}

func TestWhatCannotBecomeASecretIsShownAtOnce(t *testing.T) {
	s := secret.NewStream(secret.NewRedactor(secret.Secret{Name: "S", Value: "sesame-open"}))
	for _, step := range []struct{ piece, shown string }{
		{"say ses", "say "}, {"ame", ""}, {"-o", ""}, {"range", "sesame-orange"}, {" s", " "}, {"", ""}, {"esame-open", "${secret:S}"}, {"!", "!"}, {"ses", ""},
	} {
		if got := s.Write(step.piece); got != step.shown {
			t.Errorf("after %q it showed %q, want %q", step.piece, got, step.shown)
		}
	}
	if got := s.End(); got != "ses" {
		t.Errorf("at the end it showed %q", got)
	}
	if got := s.Write("ame-open") + s.End(); got != "ame-open" {
		t.Errorf("the next text was joined with the last: %q", got)
	}
}

func TestNoCharacterIsTorn(t *testing.T) {
	// The second byte of é begins the value, which is no text itself.
	s := secret.NewStream(secret.NewRedactor(secret.Secret{Name: "S", Value: "\xa9\xa9\xa9\xa9\xa9\xa9\xa9\xa9"}))
	for _, piece := range []string{"caf", "é", " au lait é", "é"} {
		if got := s.Write(piece); !utf8.ValidString(got) {
			t.Errorf("of %q it showed %q", piece, got)
		}
	}
	if got := s.End(); got != "é" {
		t.Errorf("at the end it showed %q", got)
	}
}

func TestALongTextWithoutSecretsCostsAStreamNoAllocation(t *testing.T) {
	s := secret.NewStream(secret.NewRedactor(secret.Secret{Name: "DB", Value: value}), secret.NewRedactor(secret.Secret{Name: "OTHER", Value: "zyxwvuts"}))
	if allocs := testing.AllocsPerRun(100, func() { s.Write("a few words of a model ") }); allocs != 0 {
		t.Errorf("a piece costs %v allocations", allocs)
	}
	var none *secret.Stream
	if allocs := testing.AllocsPerRun(100, func() { none.Write("a few words of a model "); none.End() }); allocs != 0 {
		t.Errorf("without secrets a piece costs %v allocations", allocs)
	}
	if secret.NewStream(nil, nil) != nil {
		t.Error("there is a stream where there are no secrets")
	}
}

func FuzzAnyCutOfATextShowsTheSame(f *testing.F) {
	f.Add("the password is abcdefgh", "abcdefgh", "abcdefghij", []byte{1, 2, 3})
	f.Add("aaaaaaaaaaaaaaaab", "aaaaaaab", "aaaaaaaa", []byte{5})
	f.Add("YWJjZGVmZ2g=", "abcdefgh", "h", []byte{0, 3})
	f.Add(`a "quoted\"part" of it`, `"quoted\"`, "\xff\xfe-bytes-", []byte{})
	f.Add("ééééééé", "\xa9\xa9\xa9\xa9\xa9\xa9\xa9\xa9", "éééé", []byte{2, 4})
	f.Add("61626364\n  6566\\n6768", "abcdefgh", "bcdefghi", []byte{3, 1})
	f.Add("616263\n 7:64656667\\n12\\t68: ", "abcdefgh", "abcdefg", []byte{1, 1, 1})
	f.Add("-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----\n2:MIIEpAIBAAKCAQEA", "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----", "", []byte{60})
	f.Add("one line of it\r\n 2: and the other line", "one line of it, long\nand the other line", "", []byte{9})
	f.Add("dir/a:1:NjE2MjYz\ndir/a:2:NjQ2NTY2\ndir/a:3:Njc2OA==", "61626364656667686", "", []byte{3})
	f.Add("00000000: 6162 6364 6566 6768  abcdefgh\n00000008: 696a 6b6c 6d6e  ijklmn\n: 1", "abcdefghijklm", "efghijkl", []byte{1})
	f.Add(`00000000  61 62 63 64  65 66 67 68 |abcdefgh|\n00000008  69 6a  |i\\\n|\n0`, "abcdefghij", "bcdefghi", []byte{7, 1})
	f.Add("0000000 61 62 63 64\n0000004 65 66 67 68\n 69", "abcdefghi", "abcdefgh", []byte{2})
	f.Add("${secret:A}${secret:A}", "${secret", "secret:A}", []byte{1})
	f.Fuzz(func(t *testing.T, text, one, other string, cuts []byte) {
		first := secret.NewRedactor(secret.Secret{Name: "A", Value: one}, secret.Secret{Name: "B", Value: other})
		second := secret.NewRedactor(secret.Secret{Name: "C", Value: other + one})
		if !anyPositive(cuts) {
			cuts = nil
		}
		want := second.RedactString(first.RedactString(text))
		s := secret.NewStream(first, second)
		for range 2 {
			if got := streamed(s, text, cuts); got != want {
				t.Fatalf("%q in pieces of %v showed %q, want %q", text, cuts, got, want)
			}
		}
	})
}
