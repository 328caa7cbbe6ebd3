package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The recording at the top of the README is what examples/kill-and-resume prints,
// but for the run's id and the tokens.
func TestTheRecordingInTheReadmeIsWhatTheScriptPrints(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../examples/kill-and-resume/record.sh")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", script)
	c.Dir = t.TempDir()
	recorded, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, recorded)
	}
	const page = "../../README.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "```console\n", "```\n"
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the README has no recording")
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+string(recorded)+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(anyRun(shown), anyRun(string(recorded))); diff != "" {
		t.Errorf("the recording differs; `make docs` writes it anew (-README +recorded):\n%s", diff)
	}
	if sent := strings.Count(string(recorded), "\ninvoice "); sent != 4 {
		t.Errorf("%d invoices were sent, want 4", sent)
	}
}

// anyRun takes out of a recording what each run has anew.
func anyRun(recording string) string {
	id := regexp.MustCompile(`\b(run|resume) [a-z0-9]{12}\b`)
	tokens := regexp.MustCompile(`\d+ tokens in, \d+ out`)
	return tokens.ReplaceAllString(id.ReplaceAllString(recording, "$1 ID"), "N tokens")
}
