package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

// withExample is a project that holds a copy of a folder of examples.
func withExample(t *testing.T, folder string) project {
	t.Helper()
	p := newProject(t, nil)
	if err := os.CopyFS(p.dir, os.DirFS(filepath.Join("../../examples", folder))); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheExampleOfAnAgentAnswersFromTheFiles(t *testing.T) {
	p := withExample(t, "agent")
	got := p.exits(0, "run", "agent.yaml", "What changed in 0.2.0?", "--workspace", "project")
	if want := "In 0.2.0 a run survives a crash, and money has a limit.\n"; got.out != want {
		t.Errorf("it prints %q, want %q", got.out, want)
	}
}

func TestTheExampleOfATeamHasTwoRoundsAndADecision(t *testing.T) {
	p := withExample(t, "team")
	events := p.events(p.exits(0, "run", "team.yaml", "Shall we rewrite the parser?", "--json").out)
	if n := len(of[event.Iteration](events)); n != 2 {
		t.Errorf("it had %d rounds, want 2", n)
	}
	done := of[event.RunCompleted](events)
	if len(done) != 6 || done[5].Outcome.FinalOutput != "Write the tests, and keep the parser." {
		t.Errorf("%d runs ended, the last one as %+v", len(done), done[len(done)-1].Outcome)
	}
}

func TestTheExampleOfALoopGoesOnAfterAnEarlyClaim(t *testing.T) {
	p := withExample(t, "loop")
	events := p.events(p.exits(0, "run", "agent.yaml", "Make the tests pass.", "--workspace", "project", "--approve", "all", "--json").out)
	done := of[event.RunCompleted](events)
	if len(done) != 1 || done[0].Outcome.Cycles != 5 || done[0].Outcome.Reason != "condition_met" {
		t.Errorf("it ends as %+v", done)
	}
	p.passes()
}

func TestTheExamplesOfRefinementAndGoalTakeTwoAttempts(t *testing.T) {
	for folder, args := range map[string][]string{"refine": {"agent.yaml", "Make the tests pass."}, "goal": {"goal.yaml"}} {
		t.Run(folder, func(t *testing.T) {
			p := withExample(t, folder)
			args := append(append([]string{"run"}, args...), "--workspace", "project", "--approve", "all", "--json")
			events := p.events(p.exits(0, args...).out)
			if n := len(of[event.Iteration](events)); n != 2 {
				t.Errorf("it took %d iterations, want 2", n)
			}
			p.passes()
		})
	}
}

// passes reports where the tests of an example's program fail.
func (p project) passes() {
	p.t.Helper()
	c := exec.Command("sh", "test.sh")
	c.Dir = filepath.Join(p.dir, "project")
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Errorf("the tests of the program: %v\n%s", err, out)
	}
}

// plainClient gives the client in JavaScript, for a Node that does not read types.
func plainClient(t *testing.T, client string) (args []string) {
	t.Helper()
	if exec.Command("node", "--experimental-strip-types", "-e", "").Run() == nil {
		return []string{"--experimental-strip-types", "--no-warnings", client}
	}
	plain := filepath.Join(t.TempDir(), "client.mjs")
	strip := exec.Command("go", "tool", "-modfile=../buildtools/go.mod", "esbuild", client, "--format=esm", "--outfile="+plain)
	if out, err := strip.CombinedOutput(); err != nil {
		t.Skipf("this Node does not read types, and esbuild of tools/go.mod cannot be built: %v\n%s", err, out)
	}
	return []string{plain}
}

// A client starts a run, is asked about its call, and prints what came of it; the second
// person says no, and without the token it is refused.
func TestTheExampleClientsStartDecideAndShowRuns(t *testing.T) {
	for name, client := range map[string]struct {
		program, file string
		args          func(t *testing.T, file string) []string
	}{
		"Python":     {"python3", "client-python/client.py", func(_ *testing.T, file string) []string { return []string{file} }},
		"TypeScript": {"node", "client-typescript/client.ts", plainClient},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(client.program); err != nil {
				t.Skip(client.program + " is not installed")
			}
			file, err := filepath.Abs(filepath.Join("../../examples", client.file))
			if err != nil {
				t.Fatal(err)
			}
			s := newProject(t, map[string]string{
				"agent.yaml":  asksAgent,
				"script.yaml": shellTurn("echo made >>made") + "- text: The end, ü.\n",
			}).serve()
			args := append(client.args(t, file), "asks", "go")
			says := func(answer, token string) (string, bool) {
				c := exec.Command(client.program, args...)
				c.Env = append(os.Environ(), "XDG_STATE_HOME="+s.state, "PAWL_URL="+s.url)
				if token != "" {
					c.Env = append(c.Env, "PAWL_TOKEN="+token)
				}
				c.Dir, c.Stdin = s.dir, strings.NewReader(answer)
				out, err := c.CombinedOutput()
				return string(out), err == nil
			}
			// The token is what 'pawl token show' prints.
			const question = `May it call shell.exec with {"command":`
			plain := func(text string) string { return strings.ReplaceAll(text, `": `, `":`) }
			if out, ok := says("y\n", ""); !ok || !strings.Contains(plain(out), question) || !strings.HasSuffix(out, "✓ shell.exec\nThe end, ü.\n") {
				t.Errorf("after a yes: %t\n%s", ok, out)
			}
			if out, ok := says("n\n", s.token); !ok || !strings.HasSuffix(out, "✗ shell.exec\nThe end, ü.\n") {
				t.Errorf("after a no: %t\n%s", ok, out)
			}
			if made := s.read("made"); made != "made\n" {
				t.Errorf("the command wrote %q", made)
			}
			if out, ok := says("", "pawl_wrong"); ok || !strings.Contains(out, "401") {
				t.Errorf("with a wrong token: %t\n%s", ok, out)
			}
			s.stop()
		})
	}
}
