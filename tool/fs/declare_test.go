package fs_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
)

// TestWhatTheToolsDeclare pins what recovery, dispatch and policy act on:
// search and reading run beside others, writes do not.
//
// rows: ALF-18, HAR-63, HAR-64
func TestWhatTheToolsDeclare(t *testing.T) {
	p := newPlace(t, map[string]string{"a/b.txt": "x"})
	real, err := filepath.EvalSymlinks(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	type declared struct {
		Effect     event.Effect
		ReadOnly   bool
		Concurrent bool
		Access     event.Access
		Describe   string
	}
	read := func(key, describe string) declared {
		return declared{event.EffectPure, true, true, event.Access{Key: "file:" + real + key}, describe}
	}
	for _, c := range []struct {
		tool string
		args args
		want declared
	}{
		{"fs.read", args{"path": "a/b.txt"}, read("/a/b.txt", "read a/b.txt")},
		{"fs.list", args{}, read("", "list .")},
		{"fs.list", args{"path": "a"}, read("/a", "list a")},
		{"fs.glob", args{"pattern": "*.go"}, read("", "find *.go")},
		{"fs.grep", args{"pattern": "x", "path": "a"}, read("/a", "search for x in a")},
		{"fs.write", args{"path": "a/new/c.txt", "content": "x"}, declared{
			event.EffectIdempotent, false, false, event.Access{Key: "file:" + real + "/a/new/c.txt", Write: true}, "write a/new/c.txt",
		}},
		{"fs.edit", args{"path": "a/b.txt", "old_string": "x", "new_string": "y"}, declared{
			event.EffectAtMostOnce, false, false, event.Access{Key: "file:" + real + "/a/b.txt", Write: true}, "edit a/b.txt",
		}},
		{"fs.edit", args{"path": "../b.txt", "old_string": "x", "new_string": "y"}, declared{
			event.EffectAtMostOnce, false, false, event.Access{Key: "*", Write: true}, "edit ../b.txt",
		}},
	} {
		got := p.resolve(c.tool, c.args)
		if got.Problem != nil || len(got.Access) != 1 {
			t.Errorf("%s %v: %+v", c.tool, c.args, got)
			continue
		}
		if diff := cmp.Diff(c.want, declared{got.Effect, got.ReadOnly, got.Concurrent, got.Access[0], got.Describe}); diff != "" {
			t.Errorf("%s %v (-want +got)\n%s", c.tool, c.args, diff)
		}
	}
}
