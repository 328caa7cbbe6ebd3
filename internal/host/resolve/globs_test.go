package resolve_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/host/resolve"
)

// The effect of such a program on its files is unknown, and the shell passes it the
// files whose names match.
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

func TestAPatternOfTooManyNamesIsKeptAsAPattern(t *testing.T) {
	files := map[string]string{".git/config": "", "few/a.c": "", "few/b.c": ""}
	for i := range 60 {
		files[fmt.Sprintf("many/%d", i)] = ""
	}
	dir := written(t, files)
	if err := os.Symlink("../.git/config", filepath.Join(dir, "many", "link")); err != nil {
		t.Fatal(err)
	}
	ws, err := resolve.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"base64 many/*":         {"g:.git/config", "g:many", "g:many/*"},
		"base64 ma?y/[1-9]":     {"g:.git/config", "g:ma?y/*"},
		"base64 many/1*":        {"g:many", "g:many/1", "g:many/10", "g:many/11", "g:many/12", "g:many/13", "g:many/14", "g:many/15", "g:many/16", "g:many/17", "g:many/18", "g:many/19"},
		"base64 few/*.c many/*": {"g:.git/config", "g:few", "g:few/a.c", "g:few/b.c", "g:many", "g:many/*"},
		"rm -r */*":             {"w:many/link", "wt:*/*", "wt:.git/config"},
		"rm many/../many/*":     {"g:many", "w:.git/config", "w:many/*", "w:many/link"},
		"rm */../many/*":        {"w:.git/config", "w:many/link", "w?:*/../many/*"},
		"cd \"$d\" && rm *":     {"w?:*"},
		"cp many/* few":         {":.git/config", ":many", ":many/*", "w:few", "w:few/*"},
		"cp few/*.c .":          {":few", ":few/a.c", ":few/b.c", "w:.", "w:a.c", "w:b.c"},
	} {
		got := marks(ws.Shell(line))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s names %q, want %q", line, got, want)
		}
	}
	if got := ws.Shell("base64 /*/*/*/*/*/*/*"); len(got.Paths) == 0 {
		t.Errorf("it names %+v", got)
	}
}

// Where a sandbox holds the writes, a name that is computed is no reason to take all of
// the directory for written.
func TestACopyOfWhatIsComputedWritesAllOnlyWithoutASandbox(t *testing.T) {
	ws, err := resolve.At(written(t, map[string]string{"a": ""}))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ws   resolve.Workspace
		want []string
	}{
		"without": {ws, []string{"?:a{,.bak}", "w:.", "wt:."}}, "with": {ws.Confined(), []string{"?:a{,.bak}", "w:.", "w?:./a{,.bak}"}},
	} {
		got := marks(c.ws.Shell("cp a{,.bak}"))
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s a sandbox: %q, want %q", name, got, c.want)
		}
	}
}

// The program of a command is the file that its path leads to.
func TestAProgramIsTheFileThatItsPathLeadsTo(t *testing.T) {
	dir := written(t, map[string]string{"bin/x": "", "evil": ""})
	for name, to := range map[string]string{"bin/link": "../evil", "out": "/opt", "bin/away": "/opt/tool"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := resolve.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"./bin/x": "bin/x", "bin/./x a": "bin/x", "./bin/../evil": "evil", "./bin/link": "evil", "cd bin && ./x": "bin/x", "cd bin && ../evil": "evil",
		"bin/away": "/opt/tool", "out/x": "/opt/x", "/usr/bin/no-such": "/usr/bin/no-such", "/usr/../" + dir + "/evil": "evil", dir + "/bin/link": "evil",
		dir + "/bin/away": "/opt/tool", "x": "", "cd \"$d\"; ./x": "", "\"$x\"/x": "",
	} {
		commands := ws.Shell(line).Commands
		if got := commands[len(commands)-1].Program; got != want {
			t.Errorf("%s runs %q, want %q", line, got, want)
		}
	}
}
