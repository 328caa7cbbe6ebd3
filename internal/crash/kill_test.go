// Package crash kills the real binary and looks at what is left.
package crash

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// build makes the binary once for the package's tests.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "pawl")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/pawlrun/pawl/cmd/pawl").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

type line struct {
	Type string `json:"type"`
	Data struct {
		CallID    string `json:"callId"`
		ErrorType string `json:"errorType"`
		Outcome   struct {
			Reason string `json:"reason"`
		} `json:"outcome"`
	} `json:"data"`
}

func events(t *testing.T, out []byte) []line {
	t.Helper()
	var lines []line
	for raw := range bytes.Lines(out) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatalf("not an event: %s", raw)
		}
		lines = append(lines, l)
	}
	return lines
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rows: HAR-3, HAR-60, ALDO-63
func TestKilledBetweenIntentAndSettlementTheCallIsNotRunAgain(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	write(t, filepath.Join(dir, "agent.yaml"), `
identity: {name: crash}
model_policy: {primary: {model: scripted/script.yaml}}
tools: {allow: [shell.exec]}
`)
	write(t, filepath.Join(dir, "script.yaml"), `
- tool_calls:
    - {name: shell.exec, arguments: {command: "echo ran >> effects; touch started; sleep 60"}}
- text: I see that it is in doubt.
  expect: {last: [in_doubt]}
`)
	cmd := exec.Command(bin, "run", "agent.yaml", "go")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the call never started")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	show := exec.Command(bin, "runs")
	show.Dir = dir
	list, err := show.Output()
	if err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(string(list), " ")
	resume := exec.Command(bin, "runs", "resume", id, "--json")
	resume.Dir = dir
	out, err := resume.Output()
	if err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	var starts, results, ends int
	for _, l := range events(t, out) {
		switch l.Type {
		case "tool.started":
			starts++
		case "tool_result":
			results++
			if l.Data.ErrorType != "in_doubt" {
				t.Errorf("the result is of type %q, not in_doubt", l.Data.ErrorType)
			}
		case "run.completed":
			ends++
		}
	}
	if starts != 1 || results != 1 || ends != 1 {
		t.Errorf("%d starts, %d results, %d ends; want one of each", starts, results, ends)
	}
	effects, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil || string(effects) != "ran\n" {
		t.Errorf("effects %q (%v): the call ran more than once", effects, err)
	}
}
