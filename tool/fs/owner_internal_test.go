//go:build unix

package fs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFileThatLosesItsGroupGrantsNoMoreRights(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{
		0o600: 0o600, 0o660: 0o600, 0o640: 0o600, 0o664: 0o644, 0o644: 0o644, 0o666: 0o666, 0o755: 0o755, 0o775: 0o755, 0o750: 0o700, 0o604: 0o600, 0o646: 0o644,
	} {
		if got := inAnotherGroup(mode); got != want {
			t.Errorf("%v becomes %v, want %v", mode, got, want)
		}
	}
}

// asMember has this binary edit the file "f" of the directory that it names, as
// a user who is in one group beside their own.
const asMember = "PAWL_FS_MEMBER"

const (
	member, someoneElse = 65533, 65532
	theirGroup, foreign = 65531, 65530
)

func TestEditByGroupMemberGrantsNoMoreRights(t *testing.T) {
	if dir := os.Getenv(asMember); dir != "" {
		if err := editAsMember(dir); err != nil {
			t.Fatal(err)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		owner, group int
		mode         os.FileMode
		wantGroup    int
		want         os.FileMode
	}{
		"a colleague's file of the group":          {someoneElse, theirGroup, 0o660, theirGroup, 0o660},
		"their own file of the group":              {member, theirGroup, 0o664, theirGroup, 0o664},
		"their own file of a foreign group":        {member, foreign, 0o660, member, 0o600},
		"the same, which others may read":          {member, foreign, 0o664, member, 0o644},
		"a file that is kept from a foreign group": {someoneElse, foreign, 0o606, member, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "f")
			if err := errors.Join(
				os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, member, member), os.WriteFile(file, []byte("old"), 0o600),
				os.Chown(file, tt.owner, tt.group), os.Chmod(file, tt.mode),
			); err != nil {
				t.Fatal(err)
			}
			args := []string{"-test.run=^TestEditByGroupMemberGrantsNoMoreRights$"}
			if testing.CoverMode() != "" { // where it may write
				args = append(args, "-test.gocoverdir="+dir)
			}
			child := exec.CommandContext(t.Context(), self, args...)
			child.Env = append(os.Environ(), asMember+"="+dir)
			if out, err := child.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			is := info.Sys().(*syscall.Stat_t)
			if content, err := os.ReadFile(file); is.Uid != member || int(is.Gid) != tt.wantGroup || info.Mode() != tt.want || string(content) != "new" {
				t.Errorf("%q of %d:%d with %v, want %d:%d with %v (%v)", content, is.Uid, is.Gid, info.Mode(), member, tt.wantGroup, tt.want, err)
			}
		})
	}
}

func editAsMember(dir string) error {
	if err := errors.Join(syscall.Setgroups([]int{theirGroup}), syscall.Setgid(member), syscall.Setuid(member)); err != nil {
		return err
	}
	w, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	return w.update(context.Background(), "f", func([]byte) ([]byte, error) { return []byte("new"), nil })
}
