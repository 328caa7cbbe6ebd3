package cli

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"
)

// asksToRead is an agent whose first call parks the run.
const asksToRead = `
identity: {name: gated}
tools: {allow: [fs.read], approvals: {fs.read: always}}
`

func TestFilesThatComeWhileARunGoesReachEveryProvider(t *testing.T) {
	photo, report := "\x89PNG\r\n\x1a\n a photo", "%PDF-1.7 "+strings.Repeat("a long report ", 10_000)
	inBase64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, model := range []string{"anthropic/claude-sonnet-4-5", "openai/gpt-4o", "openai-chat/gpt-4o", "google/gemini-2.5-pro", "ollama/any"} {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, reply{tool: "fs_read", args: `{"path":"note.md"}`}, reply{text: "seen"})
			p := newProject(t, map[string]string{"config.yaml": upstream.config(), "agent.yaml": asksToRead, "note.md": "a note", "photo": photo, "report": report})
			if f := p.calls(testKey, "run", "agent.yaml", "look", "--model", model, "--config", "config.yaml", "--no-budget"); f.code != exitParked {
				t.Fatalf("exit code %d: %s", f.code, f.err)
			}
			id := p.newest()
			if f := p.calls(testKey, "runs", "input", id, "compare these", "--attach", "photo", "--attach", "report", "--config", "config.yaml"); f.code != 0 {
				t.Fatalf("exit code %d: %s", f.code, f.err)
			}
			if f := p.calls(testKey, "runs", "input", id, "--attach", "note.md", "--config", "config.yaml"); f.code != 0 {
				t.Fatalf("a file alone: exit code %d: %s", f.code, f.err)
			}
			f := p.calls(testKey, "runs", "approve", id, id+"-1-1", "--resume", "--config", "config.yaml")
			if f.code != 0 || f.out != "seen\n" {
				t.Fatalf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
			}
			body := upstream.last()
			for _, want := range []string{"compare these", inBase64(photo), inBase64(report)} {
				if strings.Count(body, want) != 1 {
					t.Errorf("the request has %.40q %d times, want once", want, strings.Count(body, want))
				}
			}
			if !strings.Contains(body, "a note") && !strings.Contains(body, inBase64("a note")) {
				t.Error("the request lacks the file that came alone")
			}
			if f := p.exits(0, "runs", "events", id, "--json"); !strings.Contains(f.out, inBase64(photo)) || strings.Contains(f.out, inBase64(report)) {
				t.Error("a small file belongs in its event, a large one beside it")
			}
			p.exits(0, "runs", "verify", id)

			// What the run was given goes with those that follow on it.
			if f := p.calls(testKey, "run", "--continue", id, "and now?", "--config", "config.yaml"); f.code != 0 || !strings.Contains(upstream.last(), inBase64(report)) {
				t.Errorf("continued: exit code %d: %s", f.code, f.err)
			}
		})
	}
}

func TestFilesThatARunCannotReadAreNotSentToIt(t *testing.T) {
	upstream := newProvider(t, reply{tool: "fs_read", args: `{"path":"note.md"}`}, reply{text: "done"})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "agent.yaml": asksToRead, "note.md": "a note",
		"photo.gif": "GIF89a", "archive.zip": "PK\x03\x04\x00", "empty": "",
	})
	if f := p.calls(testKey, "run", "agent.yaml", "look", "--model", "ollama/blind", "--config", "config.yaml"); f.code != exitParked {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	id := p.newest()
	before := p.exits(0, "runs", "events", id, "--json").out
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"look", "--attach", "photo.gif"}, "ollama/blind is not known to take images, and photo.gif is one"},
		{[]string{"look", "--attach", "note.md", "--attach", "photo.gif"}, "photo.gif is one"},
		{[]string{"look", "--attach", "none.gif"}, "none.gif: no such file"},
		{[]string{"look", "--attach", "archive.zip"}, "archive.zip is not an image (PNG, JPEG, GIF, WebP), a PDF or a text in UTF-8"},
		{[]string{"look", "--attach", "empty"}, "empty is empty"},
		{[]string{" ", "--attach", "note.md"}, "TEXT is empty"},
		{nil, "give TEXT, or a file with --attach"},
	} {
		f := p.calls(testKey, append([]string{"runs", "input", id, "--config", "config.yaml"}, c.args...)...)
		if f.clean(t, c.want); f.code != exitUsage {
			t.Errorf("%q: exit code %d", c.args, f.code)
		}
	}
	if after := p.exits(0, "runs", "events", id, "--json").out; after != before {
		t.Errorf("the run heard of it:\n%s", after[len(before):])
	}
	// What every model reads is sent.
	f := p.calls(testKey, "runs", "input", id, "read this", "--attach", "note.md", "--json", "--config", "config.yaml")
	if f.code != 0 || !strings.Contains(f.out, `"taken":true`) {
		t.Errorf("exit code %d: %s%s", f.code, f.out, f.err)
	}
}

func TestAFileReachesARunThatAnotherProcessDrives(t *testing.T) {
	upstream := newProvider(t, reply{tool: "shell_exec", args: `{"command":"touch begun; while [ ! -e go ]; do sleep 0.01; done"}`}, reply{text: "seen"})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "agent.yaml": "identity: {name: waits}\ntools: {allow: [shell.exec]}\n", "photo.gif": "GIF89a\x01\x00\x01\x00 a photo",
	})
	driver := p.startWith([]string{testKey}, "run", "agent.yaml", "look", "--model", "anthropic/claude-sonnet-4-5", "--config", "config.yaml", "--no-budget")
	p.eventually("the command runs", p.exists("begun"))
	f := p.calls(testKey, "runs", "input", p.newest(), "like this", "--attach", "photo.gif", "--config", "config.yaml")
	if f.code != 0 || !strings.Contains(f.out, "received by its process") {
		t.Errorf("exit code %d: %s%s", f.code, f.out, f.err)
	}
	p.write("go", "")
	if f := driver.wait(); f.code != 0 || f.out != "seen\n" || !strings.Contains(f.err, "input: like this [image/gif photo.gif]") {
		t.Errorf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
	}
	if body := upstream.last(); !strings.Contains(body, base64.StdEncoding.EncodeToString([]byte("GIF89a\x01\x00\x01\x00 a photo"))) {
		t.Errorf("the request is %s", body)
	}
}

func TestAForkWithAnUnreadFileGoesToNoModelThatCannotReadIt(t *testing.T) {
	upstream := newProvider(t, reply{tool: "shell_exec", args: `{"command":"touch begun; while [ ! -e go ]; do sleep 0.01; done"}`}, reply{text: "seen"})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "agent.yaml": "identity: {name: waits}\ntools: {allow: [shell.exec]}\n", "photo.gif": "GIF89a\x01\x00\x01\x00 a photo",
	})
	driver := p.startWith([]string{testKey}, "run", "agent.yaml", "look", "--model", "ollama/seeing", "--config", "config.yaml")
	p.eventually("the command runs", p.exists("begun"))
	id := p.newest()
	p.exits(0, "runs", "pause", id)
	if f := p.calls(testKey, "runs", "input", id, "--attach", "photo.gif", "--config", "config.yaml"); f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	p.write("go", "")
	if f := driver.wait(); f.code != exitParked {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	events := p.events(p.exits(0, "runs", "events", id, "--json").out)
	last := strconv.FormatInt(events[len(events)-1].Seq, 10)
	f := p.calls(testKey, "runs", "fork", id, "--seq", last, "--model", "ollama/blind", "--config", "config.yaml")
	if f.clean(t, "ollama/blind is not known to take images, and photo.gif is one"); f.code != exitUsage || len(upstream.asked()) != 1 {
		t.Errorf("exit code %d after %d requests", f.code, len(upstream.asked()))
	}
	f = p.calls(testKey, "runs", "fork", id, "--seq", last, "--config", "config.yaml")
	if f.code != 0 || f.out != "seen\n" || !strings.Contains(upstream.last(), base64.StdEncoding.EncodeToString([]byte("GIF89a\x01\x00\x01\x00 a photo"))) {
		t.Errorf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
	}
}

func TestFilesSecretIsRedactedFromInputOfParkedRun(t *testing.T) {
	upstream := newProvider(t, reply{tool: "fs_read", args: `{"path":"note.md"}`}, reply{text: "seen"})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "note.md": "a note", "log.txt": "logged in with tr0ub4dor&3 today",
		"agent.yaml": strings.Replace(asksToRead, "allow: [fs.read]", "allow: [fs.read, shell.exec], secrets: {DB: {env: PAWL_TEST_DB, tools: [shell.exec]}}", 1),
	})
	secret := "PAWL_TEST_DB=tr0ub4dor&3"
	pawl := func(args ...string) finished {
		return p.startWith([]string{testKey, secret}, append(args, "--config", "config.yaml")...).wait()
	}
	if f := pawl("run", "agent.yaml", "look", "--model", "anthropic/claude-sonnet-4-5", "--no-budget"); f.code != exitParked {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	id := p.newest()
	if f := pawl("runs", "input", id, "--attach", "log.txt"); f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	if f := pawl("runs", "approve", id, id+"-1-1", "--resume"); f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	if body := upstream.last(); strings.Contains(body, "tr0ub4dor") || !strings.Contains(body, "logged in with ${secret:DB} today") {
		t.Errorf("the request is %s", body)
	}
}
