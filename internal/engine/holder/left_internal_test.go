package holder

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// marked starts a process with the mark of a server's owner, which ends with its input.
func marked(t *testing.T, server, owner string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	cmd.Env = []string{ServerVariable + "=" + server + "@" + owner}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func TestServersOfEndedProcessesAreFound(t *testing.T) {
	if _, known := Left(); !known {
		t.Skip("this system shows no environments")
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead := owner(gone.Process.Pid, "1")
	first, endFirst := marked(t, "docs", dead)
	second, _ := marked(t, "mail", dead)
	kept, _ := marked(t, "docs", Process())
	other, _ := marked(t, "docs", "elsewhere:boot:ns/"+strconv.Itoa(gone.Process.Pid)+"/1/random")
	found := func(pid int) string {
		left, _ := Left()
		i := slices.IndexFunc(left, func(p LeftProcess) bool { return p.PID == pid })
		if i < 0 {
			return ""
		}
		return left[i].Server + " " + left[i].Program
	}
	for pid, want := range map[int]string{first: "docs cat", second: "mail cat", kept: "", other: "", os.Getpid(): ""} {
		if got := found(pid); got != want {
			t.Errorf("of process %d it finds %q, want %q", pid, got, want)
		}
	}
	endFirst()
	if got := found(first); got != "" {
		t.Errorf("a process that ended is still found: %q", got)
	}
}
