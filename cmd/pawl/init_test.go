package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnATerminalInitAsksForANameAndAModel(t *testing.T) {
	p := newProject(t, nil)
	y, s := p.atTerminal(nil, "init", "first")
	p.eventually("it asks for the name", func() bool { return strings.Contains(y.seen(), "name of the agent [first]: ") })
	y.types("helper\n")
	p.eventually("it asks for the model", func() bool { return strings.Contains(y.seen(), "model [scripted/answers.yaml]: ") })
	y.types("\n")
	if f := s.wait(); f.code != 0 {
		t.Fatalf("exit code %d: %q", f.code, y.seen())
	}
	<-y.done
	text, err := os.ReadFile(filepath.Join(p.dir, "first", "agent.yaml"))
	if err != nil || !strings.Contains(string(text), `name: "helper"`) || !strings.Contains(string(text), `model: "scripted/answers.yaml"`) {
		t.Errorf("%v\n%s", err, text)
	}
	if !strings.Contains(y.seen(), "pawl run first/agent.yaml") {
		t.Errorf("the next command is not shown: %q", y.seen())
	}
}

func TestInitAsksNothingThatAFlagSays(t *testing.T) {
	p := newProject(t, nil)
	y, s := p.atTerminal(nil, "init", "--name", "helper", "--model", "scripted/answers.yaml")
	if f := s.wait(); f.code != 0 || strings.Contains(y.seen(), "]: ") {
		t.Errorf("exit code %d: %q", f.code, y.seen())
	}
}
