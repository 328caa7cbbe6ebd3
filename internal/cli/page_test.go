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

func TestRunsOpenOpensThePageOfARun(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
	bin := filepath.Join(p.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\nprintf %s \"$1\" >" + p.dir + "/opening && mv " + p.dir + "/opening " + p.dir + "/opened\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := p.serve()
	run := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	want := s.url + "/#" + s.token + "/runs/" + run.ID
	open := func(path string) (out, problems string) {
		c := p.command("runs", "open", run.ID[:6])
		var said, warned strings.Builder
		c.Env, c.Stdout, c.Stderr = append(c.Environ(), "PATH="+path), &said, &warned
		if err := c.Run(); err != nil {
			t.Errorf("%v: %s", err, &warned)
		}
		return said.String(), warned.String()
	}
	if out, problems := open(bin + ":" + os.Getenv("PATH")); out != want+"\n" || problems != "" {
		t.Errorf("it says %q, %q", out, problems)
	}
	p.eventually("the page is opened", p.exists("opened"))
	file := strings.TrimPrefix(p.read("opened"), "file://")
	if page, err := os.ReadFile(file); err != nil || strings.Contains(file, s.token) || !strings.Contains(string(page), `content="0; url=`+want+`"`) {
		t.Errorf("%q was opened, %v: %s", file, err, page)
	}
	if out, problems := open(p.dir); out != want+"\n" || !strings.Contains(problems, "open the page yourself") {
		t.Errorf("without a browser it says %q, %q", out, problems)
	}
	s.stop()
	if f := p.exits(2, "runs", "open", run.ID); !strings.Contains(f.err, "pawl serve") || f.out != "" {
		t.Errorf("without a server: %q, %q", f.out, f.err)
	}
}

// A command that starts or parks a run says where its page is, without the server's token.
func TestRunPrintsItsAddressWhileAServerIsUp(t *testing.T) {
	p := newProject(t, map[string]string{
		"agent.yaml": "identity: {name: asks}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\napprovals: {mode: park}\n", "script.yaml": "- tool_calls: [{name: fs.write, arguments: {path: a.txt, content: x}}]\n- text: the end\n",
	})
	address := regexp.MustCompile(`(?m)^page: (\S+)$`)
	if f := p.exits(4, "run", "agent.yaml", "go"); address.MatchString(f.err) {
		t.Errorf("without a server: %s", f.err)
	}
	s := p.serve()
	f := p.exits(4, "run", "agent.yaml", "go")
	all := address.FindAllStringSubmatch(f.err, -1)
	if len(all) != 2 || all[0][1] != all[1][1] || !strings.HasPrefix(all[0][1], s.url+"/#/runs/") || strings.Contains(f.err, s.token) {
		t.Fatalf("%v: %s", all, f.err)
	}
	run := strings.TrimPrefix(all[0][1], s.url+"/#/runs/")
	if p.row(run).State != journal.Parked {
		t.Errorf("%+v", p.row(run))
	}
	// The second run: in the background.
	if f := p.exits(0, "run", "agent.yaml", "go", "--detach"); !strings.Contains(f.err, "page: "+s.url+"/#/runs/"+strings.TrimSpace(f.out)) {
		t.Errorf("in the background: %s%s", f.out, f.err)
	}
	s.stop()
}
