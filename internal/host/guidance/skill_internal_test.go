package guidance

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"---\nname: a\ndescription: b\n---\nx", "\ufeff---\r\nname: a\r\ndescription: >\r\n  b\r\n  c\r\n---", "---\nname: [\n---", "---\n---", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text)
		if err != nil {
			return
		}
		if !skillName.MatchString(s.Name) || s.Description == "" || strings.ContainsAny(s.Description, "\r\n") || utf8.RuneCountInString(s.Description) > maxDescription {
			t.Errorf("%q is the skill %q: %q", text, s.Name, s.Description)
		}
	})
}
