package shell_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/tool/shell"
)

func program(t *testing.T, script string) shell.Program {
	t.Helper()
	return shell.Program{Words: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, MaxOutput: 1000}
}

func TestProgramInheritsOnlyInputOutputsAndDirectory(t *testing.T) {
	t.Setenv("PAWL_SECRET", "no")
	p := program(t, `cat; echo "$PWD" >&2; printenv PAWL_SECRET >&2; exit 2`)
	p.Input = []byte("line one\nline two\n" + strings.Repeat("x", 500))
	got, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Stdout != string(p.Input) || got.Stderr != p.Dir+"\n" || got.Code != 2 || got.Cut {
		t.Errorf("got %+v", got)
	}
}

func TestTheWordsOfAProgramAreReadByNoShell(t *testing.T) {
	p := program(t, "")
	p.Words = []string{"printf", "%s\n", "a  b", "$HOME", "'", "-n"}
	got, err := p.Run(t.Context())
	if err != nil || got.Stdout != "a  b\n$HOME\n'\n-n\n" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAProgramThatReadsNothingAndPrintsMuchIsNoTrouble(t *testing.T) {
	p := program(t, `exec 0<&-; yes | head -c 3000000; echo end`)
	p.Input = make([]byte, 1<<20)
	got, err := p.Run(t.Context())
	if err != nil || !got.Cut || len(got.Stdout) > 2000 || !strings.HasSuffix(got.Stdout, "end\n") {
		t.Errorf("got %d bytes, cut %v, %v", len(got.Stdout), got.Cut, err)
	}
}

func TestWhatAProgramStartedIsKilledWithIt(t *testing.T) {
	p := program(t, `exec 3>fifo; (echo up >&3; exec sleep 600) & wait`)
	name, gone := fifo(t, p.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		up, err := os.Open(name)
		if err != nil {
			return
		}
		defer up.Close()
		_, _ = bufio.NewReader(up).ReadString('\n')
	}()
	if _, err := p.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gone()
}

func TestAProgramThatASignalEndedSaysWhich(t *testing.T) {
	got, err := program(t, `kill -9 $$`).Run(t.Context())
	if err != nil || got.Code != 137 || got.Signal != "killed" {
		t.Errorf("got %+v, %v", got, err)
	}
}
