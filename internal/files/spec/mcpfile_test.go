package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/internal/files/spec"
)

const withMCPFile = `
identity: {name: reader}
model_policy: {primary: {model: scripted/turns.yaml}}
tools:
  allow: ["docs.*", "web.*", own.read]
  mcp_file: shared/.mcp.json
  mcp: [{server: own, command: [own-server]}]
  secrets: {TOKEN: {env: TOKEN}}
`

func parseWithServers(t *testing.T, servers string) (*spec.Agent, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shared", ".mcp.json"), []byte(servers), 0o600); err != nil {
		t.Fatal(err)
	}
	// A file that the agent does not name is not read.
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers":{"stray":{"command":"stray"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return spec.ParseAgent(filepath.Join(dir, "agent.yaml"), []byte(withMCPFile), spec.Options{})
}

func TestServersOfASharedFileAreThoseOfTheAgent(t *testing.T) {
	a, err := parseWithServers(t, `{"mcpServers": {
		"docs": {"command": "docs-server", "args": ["--stdio"], "env": {"ROOT": "./docs", "TOKEN": "${TOKEN}"}},
		"web": {"type": "http", "url": "https://web.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "blue"}}
	}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.MCPServer{
		{Server: "own", Command: []string{"own-server"}},
		{Server: "docs", Command: []string{"docs-server", "--stdio"}, Env: map[string]string{"ROOT": "./docs"}, Secrets: []string{"TOKEN"}},
		{Server: "web", URL: "https://web.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${secret:TOKEN}", "X-Team": "blue"}},
	}
	same := func(what string, got *spec.Agent) {
		t.Helper()
		if diff := cmp.Diff(want, got.Tools.MCP, cmpopts.IgnoreUnexported(spec.MCPServer{})); diff != "" {
			t.Errorf("%s it has other servers (-want +got):\n%s", what, diff)
		}
	}
	same("parsed", a)
	if err := a.Validate(spec.Options{}); err != nil {
		t.Fatal(err)
	}
	same("checked again", a)
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := spec.Restore("nowhere/agent.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	same("restored without the file", restored)
}

func TestServerOfASharedFileThatCannotBeUsedIsNamed(t *testing.T) {
	for server, want := range map[string]string{
		`{"command":"x","disabled":true}`:                        `unknown field "disabled"`,
		`{"type":"sse","url":"https://a.example.com"}`:           `its type is "sse"`,
		`{"command":"x","env":{"A":"${HOME}"}}`:                  `the variable A is ${HOME}, which is not expanded`,
		`{"command":"x","env":{"OTHER":"${OTHER}"}}`:             `with a secret OTHER in tools.secrets it is`,
		`{"command":"x","args":["${HOME:-/}/y"]}`:                `${HOME:-/} in "${HOME:-/}/y" is not expanded`,
		`{"url":"https://a.example.com","headers":{"A":"${B}"}}`: `a secret B in tools.secrets is`,
		`{}`:                          `is missing`,
		`{"command":"x"}}} {"more":{`: `there is something behind the object`,
	} {
		_, err := parseWithServers(t, `{"mcpServers":{"docs":`+server+`}}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", server, err, want)
		}
	}
}
