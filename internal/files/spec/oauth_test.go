package spec_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

func withOAuth(server string) []byte {
	used := "" // a secret that no server has needs tools
	if !strings.Contains(server, "secret:CLIENT") {
		used = ", tools: [web.fetch]"
	}
	return []byte(`
identity: {name: reader}
model_policy: {primary: {model: scripted/turns.yaml}}
tools:
  secrets: {CLIENT: {env: CLIENT` + used + `}, BOUND: {env: BOUND, hosts: [docs.example.com], tools: [web.fetch]}}
  mcp:
    - {server: docs, allow: ["*"], ` + server + `}
`)
}

func TestLoginAtAServer(t *testing.T) {
	a, err := spec.ParseAgent("agent.yaml", withOAuth(`url: https://docs.example.com/mcp, oauth: {scopes: [read, "a:b"], client_id: pawl, client_secret: "${secret:CLIENT}"}`), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o := a.Tools.MCP[0].OAuth; o == nil || o.Secret() != "CLIENT" || len(o.Scopes) != 2 || o.ClientID != "pawl" {
		t.Errorf("the login is %+v", o)
	}
	for _, w := range a.Warnings {
		if strings.Contains(w.String(), "CLIENT ") {
			t.Errorf("a secret that the login uses: %s", w)
		}
	}
	a, err = spec.ParseAgent("agent.yaml", withOAuth(`url: "http://127.0.0.1:8080/mcp", oauth: {}`), spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Tools.MCP[0].OAuth == nil {
		t.Error("an empty login is none")
	}
	text, err := a.Text()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := spec.ParseAgent("agent.yaml", text, spec.Options{}); err != nil || again.Tools.MCP[0].OAuth == nil || again.Tools.MCP[0].OAuth.Secret() != "" {
		t.Errorf("as the journal has it: %v\n%s", err, text)
	}
}

func TestLoginAtAServerIsRefused(t *testing.T) {
	for server, want := range map[string]string{
		`command: [docs-server], oauth: {}`:                                                                 "only a server that is reached over HTTP",
		`url: "http://docs.example.com/mcp", oauth: {}`:                                                     "unencrypted",
		`url: "https://docs.example.com/mcp", headers: {authorization: x}, oauth: {}`:                       "oauth or the header Authorization",
		`url: "https://docs.example.com/mcp", oauth: {scopes: ["read write"]}`:                              "scopes without blanks",
		`url: "https://docs.example.com/mcp", oauth: {client_id: pawl, client_secret: plain}`:               "may not stand in the file",
		`url: "https://docs.example.com/mcp", oauth: {client_id: pawl, client_secret: "x${secret:CLIENT}"}`: "may not stand in the file",
		`url: "https://docs.example.com/mcp", oauth: {client_id: pawl, client_secret: "${secret:NONE}"}`:    "a name of tools.secrets",
		`url: "https://docs.example.com/mcp", oauth: {client_id: pawl, client_secret: "${secret:BOUND}"}`:   "a secret without hosts",
		`url: "https://docs.example.com/mcp", oauth: {client_secret: "${secret:CLIENT}"}`:                   "client_id beside client_secret",
		`url: "https://docs.example.com/mcp", oauth: {token: x}`:                                            "token",
	} {
		_, err := spec.ParseAgent("agent.yaml", withOAuth(server), spec.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", server, err)
		} else if strings.Contains(err.Error(), "plain") {
			t.Errorf("%s: the secret is shown: %v", server, err)
		}
	}
}
