package programlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/host/secret"
)

func TestLogKeepsTheEndWithoutSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "run.servers.log")
	key := "-----BEGIN KEY-----\nabcdefghijklmnop\n-----END KEY-----"
	var known []secret.Secret
	for name, value := range map[string]string{"TOKEN": "sesame-sesame-sesame", "KEY": key} {
		known = append(known, secret.Secret{Name: name, Value: value})
	}
	read := func() string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for process := range 2 {
		l := New(known)
		l.Line("docs", fmt.Sprint("before the id, process ", process))
		l.Open(path)
		l.Line("docs", "token sesame-sesame-sesame\x1b[2Jred")
		for line := range strings.SplitSeq(key, "\n") {
			l.Line("docs", line)
			l.Line("other", "a line between")
		}
		l.Close()
		l.Line("docs", "after the end")
		text := read()
		for _, want := range []string{"docs: before the id, process 0\n", fmt.Sprintf("docs: before the id, process %d\n", process), "other: a line between\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("process %d: %q is missing: %s", process, want, text)
			}
		}
		for _, no := range []string{"sesame", "abcdefghij", "after the end", "\x1b"} {
			if strings.Contains(text, no) {
				t.Errorf("process %d: the log has %q: %s", process, no, text)
			}
		}
	}
	l := New(known)
	l.Open(path)
	for i := range 20_000 {
		l.Line("docs", fmt.Sprint("line ", i, " of many"))
		if i%1000 == 0 && len(read()) > 2*maxKept {
			t.Fatalf("the log has %d bytes", len(read()))
		}
	}
	l.Close()
	text := read()
	first, _, _ := strings.Cut(text, "\n")
	if len(text) > maxKept || len(text) < maxKept-100 || !strings.HasSuffix(text, "line 19999 of many\n") || !strings.HasPrefix(first, "docs: line ") {
		t.Errorf("the log has %d bytes, begins with %q", len(text), first)
	}
}

func TestLogThatCannotBeWrittenIsDropped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", filepath.Join(file, "run.servers.log")} {
		l := New(nil)
		for range 2 {
			l.Line("docs", "a line")
			l.Open(path)
		}
		if l.Close(); l.file != nil {
			t.Errorf("%q is open", path)
		}
	}
}
