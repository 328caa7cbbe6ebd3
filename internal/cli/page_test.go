package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// The browser gets what it needs, and no key.
func TestServeOpensThePageInTheBrowser(t *testing.T) {
	p := newProject(t, nil)
	bin := filepath.Join(p.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\nenv >" + p.dir + "/env\nprintf %s \"$1\" >" + p.dir + "/opening && mv " + p.dir + "/opening " + p.dir + "/opened\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serveWith([]string{"--open"}, "PATH="+bin+":"+os.Getenv("PATH"), "OPENAI_API_KEY=very-secret-key", "DISPLAY=:7")
	p.eventually("the page is opened", p.exists("opened"))
	// Everybody sees the arguments of a program, so the token is in none.
	opened, isFile := strings.CutPrefix(p.read("opened"), "file://")
	page, err := os.ReadFile(opened)
	if err != nil || !isFile || !strings.HasPrefix(opened, p.state) || strings.Contains(opened, s.token) {
		t.Errorf("%q was opened: %v", opened, err)
	}
	if want := `content="0; url=` + s.url + "/#" + s.token + `"`; !strings.Contains(string(page), want) {
		t.Errorf("the page that was opened has no %s:\n%s", want, page)
	}
	if env := p.read("env"); strings.Contains(env, "very-secret-key") || !strings.Contains(env, "DISPLAY=:7\n") {
		t.Errorf("the browser's environment is\n%s", env)
	}
	s.stop()
	if _, err := os.Stat(opened); err == nil {
		t.Error("the file with the token is left behind")
	}
}

func TestServeSaysWhereThePageIsWhereNothingOpensIt(t *testing.T) {
	p := newProject(t, nil)
	s := p.serveWith([]string{"--open"}, "PATH="+p.dir)
	p.eventually("that is said", func() bool {
		return strings.Contains(s.process.err.String(), "warning: open the page yourself: there is no xdg-open")
	})
	s.stop()
}

// A run is on a page of its own process until it has ended.
func TestARunIsShownOnAPageWhileItGoes(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml":  "identity: {name: shows}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [shell.exec]}\n",
		"script.yaml": "- tool_calls: [{name: shell.exec, arguments: {command: \"until test -e go; do sleep 0.05; done\"}}]\n- text: that is all\n",
	})
	process := p.start("run", "agent.yaml", "go", "--web")
	address := regexp.MustCompile(`(?m)^page: (http://127\.0\.0\.1:\d+)/#(pawl_[\w-]{43})/runs/(\w+)$`)
	p.eventually("the address is printed", func() bool { return address.MatchString(process.err.String()) })
	found := address.FindStringSubmatch(process.err.String())
	s := served{p, process, found[1], found[2]}
	if run := asks[journal.Run](s, http.StatusOK, http.MethodGet, "/v1/runs/"+found[3], ""); run.Name != "shows" || run.State != journal.Running {
		t.Errorf("%+v", run)
	}
	page, err := http.Get(s.url + "/")
	if err != nil || page.StatusCode != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%v %v", page, err)
	}
	page.Body.Close()
	p.write("go", "")
	if f := process.wait(); f.code != 0 || f.out != "that is all\n" {
		t.Errorf("exit code %d, %q: %s", f.code, f.out, f.err)
	}
	if again, err := http.Get(s.url + "/"); err == nil {
		again.Body.Close()
		t.Error("the page is still there")
	}
}
