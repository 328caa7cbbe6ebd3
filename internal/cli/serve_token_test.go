package cli

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlrun/pawl/journal"
)

// petitioner is a program that asks a server for something and prints the status.
func petitioner() {
	client := http.Client{Timeout: patience}
	answer, err := client.Post(os.Args[1], "application/json", strings.NewReader(os.Args[2]))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(answer.StatusCode, string(text))
}

func TestARunCannotSpeakToTheServerThatDrivesIt(t *testing.T) {
	p := newProject(t, nil)
	s := p.serve(sandboxVariable + "=none")
	bin := strings.TrimSuffix(p.command().Path, "pawl") + "petitioner"
	p.write("agent.yaml", strings.ReplaceAll(asksAgent, "{shell.exec: always}", "{shell.exec: never}, permissions: {network: host, filesystem: full}"))
	p.write("script.yaml", shellTurn(bin+" "+s.url+"/v1/runs '{\"agent\": \"asks\"}' >answer 2>&1")+"- text: the end\n")
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	s.reaches(r.ID, journal.Ended)
	if answer := p.read("answer"); !strings.HasPrefix(answer, "401 ") {
		t.Errorf("the run's command is answered %q", answer)
	}
	s.stop()
}

func TestAnotherUserOfThisMachineIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs the right to become another user")
	}
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
	s := p.serve()
	ask := p.command()
	ask.Path = p.publicBinary(strings.TrimSuffix(ask.Path, "pawl") + "petitioner")
	ask.Args = []string{ask.Path, s.url + "/v1/runs", `{"agent": "asks", "input": "go"}`}
	ask.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := ask.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "401 ") || !strings.Contains(string(out), "urn:pawl:problem:no-token") {
		t.Errorf("another user is answered %q, %v", out, err)
	}
	if runs := asks[items[journal.Run]](s, http.StatusOK, http.MethodGet, "/v1/runs", "").Items; len(runs) != 0 {
		t.Errorf("another user started %d runs", len(runs))
	}
	s.stop()
}

// kept are the files of tokens of started servers.
func (p project) kept() []string {
	p.t.Helper()
	found, err := filepath.Glob(filepath.Join(p.state, "pawl", "servers", "*", "*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// status is the status that a path gets with a token.
func (s served) status(token, path string) int {
	s.t.Helper()
	s.token = token
	answer, err := http.DefaultClient.Do(s.request(http.MethodGet, path, ""))
	if err != nil {
		s.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestEachStartOfAServerHasATokenThatIsFound(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
	first := p.serve()
	if len(first.token) != len("pawl_")+43 {
		t.Fatalf("the token behind # is %q", first.token)
	}
	for token, want := range map[string]int{"": 401, "pawl_wrong": 401, first.token: 200} {
		if got := first.status(token, "/v1/runs"); got != want {
			t.Errorf("with %.9q: status %d, want %d", token, got, want)
		}
	}
	if f := p.exits(0, "token", "show"); f.out != first.token+"\n" || f.err != "" {
		t.Errorf("'token show' says %q, %q", f.out, f.err)
	}
	below, elsewhere := p, p
	below.dir, elsewhere.dir = filepath.Join(p.dir, "below"), t.TempDir()
	if err := os.Mkdir(below.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if f := below.exits(0, "token", "show"); f.out != first.token+"\n" {
		t.Errorf("in a directory below: %q", f.out)
	}
	if f := elsewhere.exits(0, "token", "show", "--journal", filepath.Join(p.dir, ".pawl", "journal.db")); f.out != first.token+"\n" {
		t.Errorf("elsewhere, by the journal: %q", f.out)
	}
	if f := elsewhere.exits(2, "token", "show"); !strings.Contains(f.err, "pawl serve") || f.out != "" {
		t.Errorf("elsewhere: %q %q", f.out, f.err)
	}
	files := p.kept()
	if len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	for path, want := range map[string]fs.FileMode{files[0]: 0o600, filepath.Dir(files[0]): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, want)
		}
	}

	// Another server of the journal has a token of its own.
	second := p.serve()
	if got := second.status(first.token, "/v1/runs"); second.token == first.token || got != 401 {
		t.Errorf("the first server's token gets status %d of the second", got)
	}
	for _, s := range []served{first, second} {
		addr := strings.TrimPrefix(s.url, "http://")
		if f := p.exits(2, "token", "show"); !strings.Contains(f.err, "--addr") || !strings.Contains(f.err, addr) || f.out != "" {
			t.Errorf("two servers: %q %q", f.out, f.err)
		}
		if f := p.exits(0, "token", "show", "--addr", addr); f.out != s.token+"\n" {
			t.Errorf("%s: %q", addr, f.out)
		}
	}
	first.stop()
	if f := p.exits(0, "token", "show"); f.out != second.token+"\n" {
		t.Errorf("when the first has stopped: %q", f.out)
	}

	// The token file of a killed server is ignored.
	if err := second.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = second.process.Wait()
	if f := p.exits(2, "token", "show"); f.out != "" || len(p.kept()) != 1 {
		t.Errorf("when the second was killed: %q, files %v", f.out, p.kept())
	}
	third := p.serve()
	if f := p.exits(0, "token", "show"); f.out != third.token+"\n" || len(p.kept()) != 1 || third.token == second.token {
		t.Errorf("after another start: %q, files %v", f.out, p.kept())
	}
	third.stop()
	if left := p.kept(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, s := range []served{first, second, third} {
		if strings.Contains(s.process.err.String(), s.token) {
			t.Errorf("the log has the token:\n%s", s.process.err)
		}
	}
}

// tokenHunt is what a command does that looks for a token of the server at a URL, whose
// state is in a directory of the workspace.
const tokenHunt = `{ ls -laR state; cat state/pawl/servers/*/*; grep -rs pawl_ .; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n' | grep pawl_; BIN/pawl token show --journal JOURNAL; BIN/petitioner URL/v1/runs '{"agent": "asks"}'; } >work/found 2>&1; true`

// The state directory is in the workspace here, where a command would find it first.
func TestNoTierShowsACommandTheTokenOfAServer(t *testing.T) {
	for _, tier := range []string{"bubblewrap", "namespaces", "landlock", "none"} {
		t.Run(tier, func(t *testing.T) {
			if tier != "none" {
				if works, err := tierWorks("tier:" + tier); err != nil || !works {
					t.Skipf("the tier %s does not work on this machine: %v", tier, err)
				}
			}
			served := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
			other := project{t: t, dir: t.TempDir()}
			other.state = filepath.Join(other.dir, "state")
			if err := os.Mkdir(filepath.Join(other.dir, "work"), 0o700); err != nil {
				t.Fatal(err)
			}
			s := served.serve(sandboxVariable+"="+tier, "XDG_STATE_HOME="+other.state)
			hunt := strings.NewReplacer("BIN", filepath.Dir(served.command().Path), "URL", s.url, "JOURNAL", filepath.Join(served.dir, ".pawl", "journal.db")).Replace(tokenHunt)
			other.write("script.yaml", shellTurn(hunt)+"- text: the end\n")
			other.write("agent.yaml", strings.ReplaceAll(asksAgent, "{shell.exec: always}", "{shell.exec: never}, permissions: {network: host, filesystem: full}"))
			// A run of another journal, which the server does not know.
			if f := other.startWith([]string{sandboxVariable + "=" + tier}, "run", "agent.yaml", "go", "--journal", filepath.Join(served.state, "other.db")).wait(); f.code != 0 {
				t.Fatalf("exit code %d: %s", f.code, f.err)
			}
			found := other.read("work/found")
			if !strings.Contains(found, "401 ") {
				t.Errorf("the server answers the command:\n%s", found)
			}
			if tier != "none" && strings.Contains(found, s.token) {
				t.Errorf("the command has found the token:\n%s", found)
			}
			s.stop()
		})
	}
}

func TestACommandOfARunIsShownNoTokenAlsoWithoutATier(t *testing.T) {
	p := newProject(t, nil)
	s := p.serve(sandboxVariable + "=none")
	p.write("agent.yaml", strings.ReplaceAll(asksAgent, "{shell.exec: always}", "{shell.exec: never}, permissions: {network: host, filesystem: full}"))
	p.write("script.yaml", shellTurn(p.command().Path+" token show >answer 2>&1; true")+"- text: the end\n")
	r := asks[journal.Run](s, http.StatusCreated, http.MethodPost, "/v1/runs", `{"agent": "asks", "input": "go"}`)
	s.reaches(r.ID, journal.Ended)
	if answer := p.read("answer"); strings.Contains(answer, s.token) || !strings.Contains(answer, "a person must") {
		t.Errorf("the run's command is answered %q", answer)
	}
	s.stop()
}

func TestServerWithoutTokensWarnsThatAllAreAdmins(t *testing.T) {
	p := newProject(t, map[string]string{"agent.yaml": asksAgent, "script.yaml": "- text: the end\n"})
	p.write("tokens.yaml", "")
	s := p.serveWith([]string{"--no-auth"})
	p.eventually("that is said", func() bool {
		return strings.Contains(s.process.err.String(), "warning: --no-auth: every program and every user of this machine")
	})
	if s.token != "" {
		t.Errorf("there is a token all the same: %q", s.token)
	}
	if who := asks[struct{ Name, Role, Proof string }](s, http.StatusOK, http.MethodGet, "/v1/principal", ""); who.Role != "admin" || who.Proof != "none" {
		t.Errorf("%+v", who)
	}
	if f := p.exits(2, "token", "show"); f.out != "" {
		t.Errorf("'token show' prints %q", f.out)
	}
	s.stop()
	for _, args := range [][]string{{"--no-auth", "--tokens", "tokens.yaml"}, {"--no-auth", "--addr", "0.0.0.0:0"}} {
		p.exits(2, append([]string{"serve"}, args...)...)
	}
}
