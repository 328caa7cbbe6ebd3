package resolve_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/resolve"
)

// Nobody knows what such a program does with the files that it is given, and the
// shell gives it those whose names fit.
func TestAPatternOfNamesStandsForTheFilesThatAreThere(t *testing.T) {
	files := map[string]string{".env": "", "a.go": "", "b.go": "", "sub/.env": "", "sub/c.go": "", "[x]/d.go": "", ".git/config": ""}
	ws, err := resolve.At(written(t, files))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"base64 .en?":                   {"g:.env"},
		"base64 .e[mn]v":                {"g:.env"},
		"base64 '.e'n*":                 {"g:.env"},
		"base64 su?/.en*":               {"g:sub/.env"},
		"base64 sub/../.e*":             {"g:.", "g:.env"},
		"base64 *.go":                   {"g:a.go", "g:b.go"},
		"base64 */*.go":                 {"g:[x]/d.go", "g:sub/c.go"},
		"base64 [x]/d.go":               {"g:[x]/d.go"},
		"base64 *":                      {"g:[x]", "g:a.go", "g:b.go", "g:sub"},
		"base64 *.txt":                  {},
		"base64 .git/hooks/*":           {"g:.git/hooks"},
		"base64 .git/confi?":            {"g:.git", "g:.git/config"},
		"cd \"$d\" && base64 .en?":      {"?g:.en?"},
		"cd sub && base64 .en?":         {"g:sub/.env"},
		"base64 --wrap=0 .en? --x=*":    {"g:0", "g:.env"},
		"base64 -- \".en?\" '.en'\"?\"": {"g:.en?"},
	} {
		if got := marks(ws.Shell(line)); !slices.Equal(got, want) {
			t.Errorf("%s names %q, want %q", line, got, want)
		}
	}
}

func TestAPatternOfTooManyNamesStandsForTheirDirectory(t *testing.T) {
	files := map[string]string{".git/config": ""}
	for i := range 60 {
		files[fmt.Sprintf("many/%d", i)] = ""
	}
	ws, err := resolve.At(written(t, files))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"base64 many/*":     {"g:many", "tg:many"},
		"base64 ma?y/[1-9]": {"tg:."},
		"base64 many/1*":    {"g:many", "g:many/1", "g:many/10"},
	} {
		if got := marks(ws.Shell(line)); !slices.Equal(got[:min(3, len(got))], want) {
			t.Errorf("%s names %q, want %q", line, got, want)
		}
	}
	if got := ws.Shell("base64 /*/*/*/*/*/*/*"); len(got.Paths) == 0 {
		t.Errorf("it names %+v", got)
	}
}
