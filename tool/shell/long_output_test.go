package shell_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/shell"
)

// rows: HAR-6
func TestACommandThatPrintsGigabytesCostsBoundedMemory(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		sh := newShell(shell.Options{Dir: t.TempDir()})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := good(t, sh, "echo first; yes | head -c 200000000; echo last")
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 11*shell.MaxOutput/2 {
			t.Errorf("200 MB of output allocated %d bytes", spent)
		}
		if !r.Truncated || len(r.Output) > shell.MaxOutput+200 {
			t.Errorf("%d bytes, truncated %v", len(r.Output), r.Truncated)
		}
		dropped := 200000011 - shell.MaxOutput
		head := fmt.Sprintf("exit code: 0\n[200000011 bytes of output, of which %d in the middle are left out]\nfirst\ny\n", dropped)
		if !strings.HasPrefix(r.Output, head) || !strings.HasSuffix(r.Output, "\ny\nlast\n") ||
			strings.Count(r.Output, fmt.Sprintf("\n[… %d bytes left out …]\n", dropped)) != 1 {
			t.Errorf("%.200q", r.Output)
		}
	})
}

// rows: HAR-6
func TestAnOutputOfManyMegabytesIsKeptWhole(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		r := good(t, newShell(shell.Options{Dir: t.TempDir()}), fmt.Sprintf("yes | head -c %d", shell.MaxOutput))
		if want := "exit code: 0\n" + strings.Repeat("y\n", shell.MaxOutput/2); r.Truncated || r.Output != want {
			t.Errorf("%d of %d bytes, truncated %t", len(r.Output), len(want), r.Truncated)
		}
	})
}

// A cut never divides a secret: half of one would not be found by a search for the
// whole.
func TestWhatIsDroppedLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "correct-horse-battery-staple-0123456789"
	redact := func(s string) string { return strings.ReplaceAll(s, secret, "(a secret)") }
	sh := shell.New(shell.Options{Dir: t.TempDir()})
	args, err := json.Marshal(map[string]string{"command": "yes " + secret + " | head -c 40000000"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sh.Run(t.Context(), tool.Call{ID: "c", Args: args, Redact: redact})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Truncated || len(r.Output) < shell.MaxOutput-1<<20 {
		t.Fatalf("%d bytes, truncated %t", len(r.Output), r.Truncated)
	}
	_, body, _ := strings.Cut(redact(r.Output), "left out]\n")
	head, tail, _ := strings.Cut(body, "\n[… ")
	number, tail, _ := strings.Cut(tail, " bytes left out …]\n")
	for _, kept := range []string{head, tail} {
		if rest := strings.Trim(strings.ReplaceAll(kept, "(a secret)", ""), "\n"); len(rest) > 8 {
			t.Errorf("%q is left of secrets", rest)
		}
	}
	if dropped, err := strconv.Atoi(number); err != nil || dropped+strings.Count(head+tail, "(a secret)")*len(secret)+
		strings.Count(head+tail, "\n") != 40000000 {
		t.Errorf("%q bytes are said to be left out", number)
	}
}

func TestTheOutputIsAlwaysText(t *testing.T) {
	inEveryTier(t, func(t *testing.T, newShell maker) {
		r := good(t, newShell(shell.Options{Dir: t.TempDir()}), "head -c 600000 /dev/urandom")
		if !utf8.ValidString(r.Output) || r.Truncated {
			t.Error("random bytes were taken for text")
		}
	})
}
