package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestARunIsAResource(t *testing.T) {
	each(t, func(t *testing.T, s site, version string) {
		session := s.connect(version, nil)
		read := func(uri string) (string, error) {
			r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				return "", err
			}
			return r.Contents[0].Text, nil
		}
		for range 2 {
			run, _ := s.callTool(session, "reads", "", map[string]any{"task": "go", "language": "x"})
			text, err := read("pawl://runs/" + run)
			var stands struct{ ID, State string }
			if err != nil || json.Unmarshal([]byte(text), &stands) != nil || stands.ID != run || stands.State != "ended" {
				t.Errorf("the run reads as %s, %v", text, err)
			}
			text, err = read("pawl://runs/" + run + "/events")
			lines := strings.Split(strings.TrimSpace(text), "\n")
			if err != nil || int64(len(lines)) != s.standing(run).Seq || !strings.Contains(lines[0], `"run.started"`) || !strings.Contains(lines[len(lines)-1], `"run.completed"`) {
				t.Errorf("the events read as %d lines, %v", len(lines), err)
			}
			if text, err = read("pawl://runs/" + run + "/log"); err != nil || text != "the log of "+run+"\n" {
				t.Errorf("the log reads as %s, %v", text, err)
			}
		}
		for _, uri := range []string{"pawl://runs/none", "pawl://runs/none/events", "pawl://runs/none/log", "pawl://runs/a%2f..%2f..", "pawl://agents/x", "file:///etc/passwd"} {
			if text, err := read(uri); err == nil {
				t.Errorf("%s reads as %s", uri, text)
			}
		}
		page, err := session.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(page.ResourceTemplates) != 3 {
			t.Errorf("the templates are %+v, %v", page, err)
		}
	})
}
