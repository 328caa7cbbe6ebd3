package cli

import (
	"strings"
	"testing"
)

// A run whose process was killed is free at once, although its lease still holds: a
// resume reports it and continues without waiting.
func TestARunThatItsProcessLeftIsShownSoAndGoesOnAtOnce(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: left}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [shell.exec]}\n",
		"script.yaml": shellTurn("touch started; until [ -e go ]; do sleep 0.01; done") + "- text: the end\n",
	})
	s := p.start("run", "agent.yaml", "work")
	p.eventually("the call started", p.exists("started"))
	id := p.newest()
	if page := p.exits(0, "runs", "show", id).out; !strings.Contains(page, "\ndriver    process ") || strings.Contains(page, "gone") {
		t.Errorf("a run that goes is shown as\n%s", page)
	}
	if list := p.exits(0, "runs").out; !strings.Contains(list, "  running  ") {
		t.Errorf("a run that goes is listed as\n%s", list)
	}
	verbs := [][]string{{"runs"}, {"runs", "tree", id}, {"runs", "show", id}}
	for _, verb := range verbs {
		if said := p.exits(0, append(verb, "--json")...).out; !strings.Contains(said, `"state":"running"`) || strings.Contains(said, "undriven") {
			t.Errorf("%v tells programs of a run that goes\n%s", verb, said)
		}
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.wait()
	if page := p.exits(0, "runs", "show", id).out; !strings.Contains(page, "which has died; continue with 'pawl runs resume "+id+"'") {
		t.Errorf("a run that was left is shown as\n%s", page)
	}
	for _, verb := range verbs {
		if said := p.exits(0, append(verb, "--json")...).out; !strings.Contains(said, `"undriven":true`) {
			t.Errorf("%v tells programs of a run that was left\n%s", verb, said)
		}
	}
	for _, verb := range verbs[:2] {
		if list := p.exits(0, verb...).out; !strings.Contains(list, "  running, no process drives it  ") {
			t.Errorf("%v lists a run that was left as\n%s", verb, list)
		}
	}
	p.write("go", "")
	if f := p.exits(0, "runs", "input", id, "go on", "--resume"); !strings.Contains(f.out, "the end") {
		t.Errorf("it does not go on: %s%s", f.out, f.err)
	}
}
