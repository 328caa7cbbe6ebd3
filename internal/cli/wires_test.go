package cli

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestFilesAndASchemaReachAllFourProviders(t *testing.T) {
	upstream := newProvider(t, reply{text: `{"good":true}`})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "photo": "\x89PNG\r\n\x1a\n a photo", "note.md": "remember <this>",
		"agent.yaml": "identity: {name: judge}\ntools: {allow: []}\n" +
			"resultSchema: {type: object, properties: {good: {type: boolean}}, required: [good], additionalProperties: false}\n",
	})
	photo := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n a photo"))
	for model, want := range map[string][]string{
		"anthropic/claude-sonnet-4-5": {`"media_type":"image/png"`, `"type":"document"`, `"output_config"`},
		"openai/gpt-5":                {`"type":"input_image"`, `"type":"input_text"`, `"json_schema"`},
		"openai-chat/gpt-5":           {`"type":"image_url"`, `"type":"text"`, `"response_format"`},
		"google/gemini-2.5-pro":       {`"mimeType":"image/png"`, `"responseJsonSchema"`},
		"ollama/seeing":               {`"type":"image_url"`, "matches this JSON schema"},
	} {
		f := p.calls(testKey, "run", "agent.yaml", "judge", "--model", model, "--config", "config.yaml", "--no-stream",
			"--no-budget", "--attach", "photo", "--attach", "note.md")
		if f.code != 0 || f.out != "{\"good\":true}\n" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %s", model, f.code, f.out, f.err)
			continue
		}
		body := upstream.last()
		note := `remember <this>`
		if strings.HasPrefix(model, "google/") {
			note = base64.StdEncoding.EncodeToString([]byte(note))
		}
		for _, w := range append(want, photo, note) {
			if !strings.Contains(body, w) {
				t.Errorf("%s: the request lacks %s: %s", model, w, body)
			}
		}
	}

	// What a run was given goes with the run that continues it, and a message
	// may be a file alone.
	p.write("second", "\x89PNG\r\n\x1a\n another")
	f := p.calls(testKey, "run", "--continue", p.newest(), "--attach", "second", "--config", "config.yaml")
	if f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	if body := upstream.last(); !strings.Contains(body, photo) ||
		!strings.Contains(body, base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n another"))) {
		t.Errorf("the continued run sends %s", body)
	}
}

func TestFilesThatAModelCannotReadAreRefusedBeforeAnyCall(t *testing.T) {
	upstream := newProvider(t, reply{text: "seen"})
	p := newProject(t, map[string]string{
		"config.yaml": upstream.config(), "photo.gif": "GIF89a", "paper.pdf": "%PDF-1.7", "note.txt": "hi", "empty": "",
		"archive.zip": "PK\x03\x04\x00", "agent.yaml": "identity: {name: see}\ntools: {allow: []}\n",
	})
	run := func(model string, files ...string) finished {
		args := []string{"run", "agent.yaml", "look", "--config", "config.yaml", "--no-budget", "--no-stream", "--model", model}
		for _, f := range files {
			args = append(args, "--attach", f)
		}
		return p.calls(testKey, args...)
	}
	for _, c := range []struct {
		model string
		files []string
		want  string
	}{
		{"ollama/blind", []string{"photo.gif"}, "ollama/blind is not known to take images, and photo.gif is one; use another model, or say in the config file"},
		{"ollama/seeing", []string{"paper.pdf"}, "ollama/seeing is not known to take PDFs, and paper.pdf is one"},
		{"deepseek/deepseek-chat", []string{"photo.gif"}, "there is no key"},
		{"ollama/any", []string{"none.gif"}, "none.gif: no such file"},
		{"ollama/any", []string{"archive.zip"}, "archive.zip is not an image (PNG, JPEG, GIF, WebP), a PDF or a text in UTF-8"},
		{"ollama/any", []string{"empty"}, "empty is empty"},
		{"ollama/any", []string{"."}, ". is not a file"},
	} {
		f := run(c.model, c.files...)
		if f.code != exitUsage {
			t.Errorf("%s with %v: exit code %d: %s", c.model, c.files, f.code, f.err)
		}
		f.clean(t, c.want)
	}
	if n := len(upstream.asked()); n != 0 || p.exists(".pawl/journal.db")() {
		t.Errorf("%d calls were made, or a journal was left", n)
	}
	// A text is read by every model, and of one that is not listed nothing is known.
	for _, f := range []finished{run("ollama/blind", "note.txt"), run("ollama/any", "photo.gif", "paper.pdf")} {
		if f.code != 0 || f.out != "seen\n" {
			t.Errorf("exit code %d, stdout %q: %s", f.code, f.out, f.err)
		}
	}
	// The files of an ended run count when another model takes over.
	f := p.calls(testKey, "run", "--continue", p.newest(), "more", "--model", "ollama/blind", "--config", "config.yaml")
	if f.clean(t, "ollama/blind is not known to take images"); f.code != exitUsage {
		t.Errorf("exit code %d", f.code)
	}
}

func TestAForkGoesToNoModelThatCannotReadItsFiles(t *testing.T) {
	upstream := newProvider(t, reply{text: "seen"})
	p := newProject(t, map[string]string{"config.yaml": upstream.config(), "photo.gif": "GIF89a", "agent.yaml": "identity: {name: see}\ntools: {allow: []}\n"})
	if f := p.calls(testKey, "run", "agent.yaml", "look", "--config", "config.yaml", "--model", "ollama/seeing", "--attach", "photo.gif"); f.code != 0 {
		t.Fatalf("exit code %d: %s", f.code, f.err)
	}
	f := p.calls(testKey, "runs", "fork", p.newest(), "--seq", "2", "--model", "ollama/blind", "--config", "config.yaml")
	if f.clean(t, "ollama/blind is not known to take images, and photo.gif is one"); f.code != exitUsage || len(upstream.asked()) != 1 {
		t.Errorf("exit code %d after %d calls", f.code, len(upstream.asked()))
	}
}

// An agent with tools answers by its schema on every wire: in the provider's own
// way, or told of it where that does not go beside tools, and is held to it.
func TestAnAnswerBySchemaIsAskedForBesideTools(t *testing.T) {
	for model, asked := range map[string]string{
		"anthropic/claude-sonnet-4-5": `"output_config":{"format":{"type":"json_schema"`,
		"openai/gpt-4o":               `"text":{"format":{"type":"json_schema"`,
		"openai-chat/gpt-4o":          `"response_format":{"type":"json_schema"`,
		"google/gemini-2.5-pro":       `matches this JSON schema`,
		"ollama/qwen3":                `matches this JSON schema`,
	} {
		t.Run(strings.ReplaceAll(model, "/", " "), func(t *testing.T) {
			upstream := newProvider(t, reply{tool: "fs_read", args: `{"path":"note.md"}`}, reply{text: `{"good":"very"}`}, reply{text: `{"good":true}`})
			p := newProject(t, map[string]string{
				"config.yaml": upstream.config(), "note.md": "a note",
				"agent.yaml": readsAgent + "resultSchema: {type: object, properties: {good: {type: boolean}}, required: [good], additionalProperties: false}\n",
			})
			f := p.calls(testKey, "run", "agent.yaml", "judge", "--model", model, "--config", "config.yaml", "--no-budget")
			if f.code != 0 || f.out != "{\"good\":true}\n" || len(upstream.asked()) != 3 {
				t.Fatalf("exit code %d, stdout %q after %d requests: %s", f.code, f.out, len(upstream.asked()), f.err)
			}
			for i, r := range upstream.asked() {
				if !strings.Contains(r.body, asked) {
					t.Errorf("request %d does not ask for the schema: %s", i+1, r.body)
				}
			}
			if last := upstream.last(); !strings.Contains(last, "does not match the JSON schema of this task: /good: must be boolean, not string") {
				t.Errorf("the model is not told what was wrong: %s", last)
			}
		})
	}
}
