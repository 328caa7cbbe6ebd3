package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The page beside other processes, in a browser: a command line that decides at the same
// time as tabs, and a server that is killed during a stream.
func TestThePageBesideOtherProcesses(t *testing.T) {
	if os.Getenv("PAWL_LONG") == "" {
		t.Skip("part of the long suite: PAWL_LONG=1")
	}
	browser, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		browser, err = exec.LookPath("chromium")
	}
	if _, missing := exec.LookPath("npm"); err != nil || missing != nil {
		t.Skip("there is no npm, or no Chromium")
	}
	var flood strings.Builder
	for cycle := range 7 {
		flood.WriteString("- {delay: 700ms, text: \"I look, time " + fmt.Sprint(cycle) + ".\", tool_calls: [")
		for call := range 20 {
			fmt.Fprintf(&flood, `{name: fs.glob, arguments: {pattern: "*.%d-%d"}}, `, cycle, call)
		}
		flood.WriteString("]}\n")
	}
	p := newProject(t, map[string]string{
		"asks.yaml":         "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/asks.script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n",
		"asks.script.yaml":  "- {text: I write., tool_calls: [{name: fs.write, arguments: {path: asked.txt, content: x}}]}\n- {text: That is all.}\n",
		"flood.yaml":        "identity: {name: flood}\nmodel_policy: {primary: {model: scripted/flood.script.yaml}}\ntools: {allow: [fs.glob]}\nbudgets: {max_tool_calls: none}\n",
		"flood.script.yaml": flood.String() + "- {text: That is all.}\n",
	})
	script, err := os.ReadFile(filepath.Join("testdata", "page.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "page.cjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "playwright-core@1.65.1")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("playwright-core cannot be installed: %v\n%s", err, out)
	}
	play := exec.CommandContext(t.Context(), "node", "page.cjs")
	play.Dir = dir
	play.Env = append(os.Environ(), "CHROMIUM="+browser, "PROJECT="+p.dir, "PAWL_JOURNAL=", "XDG_STATE_HOME="+p.state)
	out, err := play.CombinedOutput()
	if err != nil || strings.Contains(string(out), "not ok ") || strings.Count(string(out), "\nok ")+strings.Count("\n"+string(out), "\nok ") == 0 {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
