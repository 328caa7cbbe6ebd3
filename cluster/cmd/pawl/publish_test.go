package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/cluster/journal/postgres"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/engine/drive"
	"github.com/pawlrun/pawl/journal"
)

// machine is a directory without agent files, with a cache of its own.
func (p project) machine(t *testing.T) project { return project{dir: t.TempDir(), journal: p.journal} }

func (p project) cache() string { return "XDG_CACHE_HOME=" + filepath.Join(p.dir, "cache") }

func (p project) publish(t *testing.T, args ...string) {
	t.Helper()
	if out, err := p.command(append([]string{"journal", "publish"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// asks makes a request, and decodes its answer.
func asks(t *testing.T, method, url, token, body string, into any) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		t.Logf("%s: %s", answer.Status, text)
	} else if into != nil && err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer.StatusCode
}

// offers waits until a server offers a version of the agent.
func offers(t *testing.T, s journal.Store, url, version string) {
	t.Helper()
	await(t, s, "the version "+version, func() bool {
		var all struct {
			Items []struct{ Name, Version string }
		}
		asks(t, http.MethodGet, url+"/v1/agents", "", "", &all)
		return len(all.Items) == 1 && all.Items[0].Name == "marks" && all.Items[0].Version == version
	})
}

// The servers have no files of their own. A server takes a run over with the files that it
// began with, although the machine that it began on is gone and a newer version is there.
func TestPublishedFilesAreAlikeAtAllServers(t *testing.T) {
	p := newProject(t, "published")
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	version := func(n string) {
		for name, text := range map[string]string{"marks.yaml": strings.Replace(agent, "name: marks}", "name: marks, version: \""+n+"\"}", 1), "mark.sh": "echo \"$PAWL_CALL_ID\" >> ledger\necho by version " + n + "\n"} {
			if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.publish(t, p.dir)
	}
	version("1")
	one, two := p.machine(t), p.machine(t)
	firstURL, first, _ := one.serve(t, "PAWL_HOST=same", one.cache())
	secondURL, _, _ := two.serve(t, "PAWL_HOST=same", two.cache())
	for _, url := range []string{firstURL, secondURL} {
		offers(t, s, url, "1")
	}
	version("2")
	for _, url := range []string{firstURL, secondURL} {
		offers(t, s, url, "2")
	}
	late := p.machine(t)
	lateURL, _, _ := late.serve(t, "PAWL_HOST=same", late.cache())
	started := map[string]string{}
	for name, url := range map[string]string{"marks@1": firstURL, "marks@2": lateURL, "marks": secondURL} {
		var run journal.Run
		if status := asks(t, http.MethodPost, url+"/v1/runs", "", `{"agent": "`+name+`", "input": "go"}`, &run); status != http.StatusCreated {
			t.Fatalf("%s: status %d", name, status)
		}
		started[name] = run.ID
	}
	var again journal.Run // a version that only an earlier publication has, at a server that began after it
	if status := asks(t, http.MethodPost, lateURL+"/v1/runs", "", `{"agent": "marks@1", "input": "go"}`, &again); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	started["marks@1 again"] = again.ID
	await(t, s, "the first call", func() bool { return len(one.ledger(t)) > 0 })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if err := os.RemoveAll(filepath.Join(one.dir, "cache")); err != nil {
		t.Fatal(err)
	}
	for name, run := range started {
		await(t, s, "the end of "+name, func() bool {
			row, err := s.Run(t.Context(), run)
			return err != nil || row.State == journal.Ended
		})
		want := "by version 1"
		if !strings.HasPrefix(name, "marks@1") {
			want = "by version 2"
		}
		marked, taken := 0, 0
		for e, err := range drive.Events(t.Context(), s, run, 0) {
			if err != nil {
				t.Fatal(err)
			}
			switch d := e.Event.Data.(type) {
			case event.RunResumed:
				taken++
			case event.ToolResult:
				if d.ErrorType == event.ErrorInDoubt {
					continue
				}
				if marked++; !strings.Contains(d.Output, want) {
					t.Errorf("%s: a call says %q, want %q", name, d.Output, want)
				}
			}
		}
		if marked < calls-1 || name == "marks@1" && taken == 0 {
			t.Errorf("%s: %d calls, resumed %d times", name, marked, taken)
		}
	}
}

func TestPublishedTokensCountAtAllServers(t *testing.T) {
	p := newProject(t, "tokens")
	file := filepath.Join(p.dir, "shared.yaml")
	create := func(name string) string {
		out, err := p.command("token", "create", name, "--role", "viewer", "--tokens", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Fields(string(out))
		return lines[len(lines)-1]
	}
	p.publish(t, p.dir)
	ann := create("ann")
	p.publish(t, "--tokens", file)
	s, err := postgres.Open(t.Context(), p.journal, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var urls []string
	for range 2 {
		of := p.machine(t)
		url, _ := listens(t, of.command("serve", "--addr", "127.0.0.1:0"))
		urls = append(urls, url)
	}
	status := func(url, token string) int { return asks(t, http.MethodGet, url+"/v1/runs", token, "", nil) }
	for _, url := range urls {
		if ok, wrong := status(url, ann), status(url, "pawl_wrong"); ok != http.StatusOK || wrong != http.StatusUnauthorized {
			t.Errorf("a published token gets %d, a wrong one %d", ok, wrong)
		}
	}
	bob := create("bob")
	if out, err := p.command("token", "revoke", "ann", "--tokens", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.publish(t, "--tokens", file)
	for _, url := range urls {
		await(t, s, "the revocation", func() bool {
			return status(url, ann) == http.StatusUnauthorized && status(url, bob) == http.StatusOK
		})
	}
}
