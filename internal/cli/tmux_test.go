package cli

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pane is a terminal of tmux's, which knows what scrolled out of sight.
type pane struct {
	t      *testing.T
	socket string
}

func (n pane) tmux(args ...string) string {
	n.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", n.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// all is everything that the terminal shows and showed.
func (n pane) all() string { return n.tmux("capture-pane", "-p", "-J", "-S", "-") }

// inTmux runs a command in a terminal of tmux's.
func (p project) inTmux(width, height int, args ...string) pane {
	p.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		p.t.Skip("tmux is not installed")
	}
	n := pane{p.t, filepath.Join(p.t.TempDir(), "tmux")}
	c := p.command(args...)
	line := "cd '" + c.Dir + "' && env"
	for _, v := range c.Env {
		if name, value, _ := strings.Cut(v, "="); name != "TERM" {
			line += " '" + name + "=" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
	}
	for _, word := range append([]string{c.Path}, args...) {
		line += " '" + word + "'"
	}
	n.tmux("new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "sh", "-c", line+"; echo exit code $?; exec cat")
	p.t.Cleanup(func() { _ = exec.Command("tmux", "-S", n.socket, "kill-server").Run() })
	return n
}

// Whatever is drawn again and again, what stays on the screen and above it is what
// was written once, also where the window becomes narrower meanwhile.
func TestNothingOfTheLiveLineStaysInTheScrollback(t *testing.T) {
	var text, want strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "    Paragraph %d has **several words** that do not fit on one line of a narrow screen.\n\n", i)
		fmt.Fprintf(&want, "Paragraph %d has several words that do not fit on one line of a narrow screen. ", i)
	}
	p := newProject(t, map[string]string{
		"agent.yaml": shellAgent,
		"script.yaml": shellTurn("touch waits; while [ ! -e go ]; do sleep 0.05; done") + "- delay: 10ms\n  text: |\n" +
			text.String(),
	})
	n := p.inTmux(44, 12, "run", "agent.yaml", "go")
	p.eventually("the call runs", p.exists("waits"))
	p.eventually("the live line says so", func() bool { return strings.Contains(n.all(), "· → run") })
	tty := strings.TrimSpace(n.tmux("display-message", "-p", "#{pane_tty}"))
	for _, width := range []string{"20", "14"} {
		n.tmux("resize-window", "-x", width)
		p.eventually("the terminal is narrower", func() bool {
			size, err := exec.Command("stty", "-F", tty, "size").Output()
			return err == nil && string(size) == "12 "+width+"\n"
		})
	}
	p.write("go", "")
	p.eventually("it ends", func() bool { return strings.Contains(n.all(), "exit code 0") })
	all := n.all()
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if !strings.Contains(words(all), words(want.String())) {
		t.Errorf("the answer is not there as it was written:\n%s", all)
	}
	for _, moving := range []string{"waiting for the model", "· → run", "thinking", "cycle 1/50 ░"} {
		if strings.Contains(all, moving) {
			t.Errorf("%q stays:\n%s", moving, all)
		}
	}
	if n := strings.Count(all, "Paragraph"); n != 30 {
		t.Errorf("30 paragraphs were written, %d are there", n)
	}
}
