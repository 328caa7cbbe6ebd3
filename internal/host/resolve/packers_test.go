package resolve_test

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/host/resolve"
)

// What packs a directory reads what lies below it.
func TestAProgramThatPacksADirectoryReadsAllOfIt(t *testing.T) {
	ws, err := resolve.At(written(t, map[string]string{"src/a": "", "b": "", "a.tgz": ""}))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"tar cf - .": "t:.", "tar -czf x.tgz src": "t:src", "tar --create -f - -C src .": "t:.", "zip -r - src": "t:src", "rsync -a ./ h:x": "t:.",
		"scp -r src host:": "t:src", "tar cf - s*": "t:src", "ack x src": "t:src", "cd \"$d\"; tar cf - src": "t?:src",
		"tar xf a.tgz": "", "tar tf a.tgz": "", "tar cf - b": "", "zip x.zip b": "", "prettier src": "",
	} {
		got := ws.Shell(line)
		if trees := slices.DeleteFunc(marks(got), func(m string) bool { return m[0] != 't' && m[0] != '?' }); want == "" && len(trees) > 0 || want != "" && !slices.Contains(trees, want) {
			t.Errorf("%s reads %q, want %q (%v)", line, trees, want, marks(got))
		}
	}
}
