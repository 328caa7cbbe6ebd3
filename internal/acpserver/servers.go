package acpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/pawlrun/pawl/internal/files/kinds"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/internal/host/guidance"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/view/terminal"
)

// editorServers are the MCP servers that the editor passes for a session, as an agent file
// names them. The values of credentials are not among them: their names are secrets, whose
// values only the process of the editor's session has.
type editorServers struct {
	Servers []spec.MCPServer
	Secrets spec.Secrets
}

// credential matches the names of variables whose values are secrets.
var credential = regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`)

// serversOf converts the servers of the editor, and keeps the values of their credentials
// for this process.
func (s *Server) serversOf(all []acp.McpServer) (editorServers, error) {
	of := editorServers{Secrets: spec.Secrets{}}
	optional := false
	for _, each := range all {
		m := spec.MCPServer{Allow: []string{"*"}, Required: &optional}
		switch {
		case each.Stdio != nil:
			m.Server, m.Command = each.Stdio.Name, append([]string{each.Stdio.Command}, each.Stdio.Args...)
			for _, v := range each.Stdio.Env {
				if !credential.MatchString(v.Name) {
					m.Env = with(m.Env, v.Name, v.Value)
					continue
				}
				m.Secrets = append(m.Secrets, v.Name)
				if err := s.secret(of.Secrets, v.Name, v.Name, v.Value); err != nil {
					return of, err
				}
			}
		case each.Http != nil:
			m.Server, m.URL = each.Http.Name, each.Http.Url
			for _, h := range each.Http.Headers {
				value, err := s.header(of.Secrets, each.Http, h)
				if err != nil {
					return of, err
				}
				m.Headers = with(m.Headers, h.Name, value)
			}
		default:
			s.Log.Warn("an MCP server of the editor is not used: only stdio and http are spoken")
			continue
		}
		m.Server = strings.Trim(notWord.ReplaceAllString(m.Server, "_"), "_")
		of.Servers = append(of.Servers, m)
	}
	return of, nil
}

// notWord matches what names of servers and secrets do not have.
var notWord = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// header returns the header of a server as an agent file has it: with a secret in place of
// the credential, which may follow a scheme such as Bearer. A value that is too short for a
// secret is none, unless the header's name is that of a credential. The address is part of
// the variable's name, because servers of two sessions may have the same name.
func (s *Server) header(in spec.Secrets, server *acp.McpServerHttpInline, h acp.HttpHeader) (string, error) {
	scheme, value := "", h.Value
	if first, rest, spaced := strings.Cut(value, " "); spaced && len(rest) >= secret.MinLength && !notWord.MatchString(first) {
		scheme, value = first+" ", rest
	}
	if len(value) < secret.MinLength {
		if credential.MatchString(h.Name) {
			return "", fmt.Errorf("the header %s of %s has fewer than %d bytes, which cannot be kept secret", h.Name, server.Name, secret.MinLength)
		}
		return value, nil
	}
	name := strings.ToUpper(notWord.ReplaceAllString("mcp_"+server.Name+"_"+h.Name, "_"))
	variable := fmt.Sprintf("%s_%.4X", name, sha256.Sum256([]byte(server.Url)))
	return scheme + "${secret:" + name + "}", s.secret(in, name, variable, value)
}

// secret keeps the value of a credential, which a variable has.
func (s *Server) secret(in spec.Secrets, name, variable, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, twice := in[name]; twice && (before.Env != variable || s.credentials[variable] != value) {
		return fmt.Errorf("two MCP servers have different values of %s", name)
	}
	in[name], s.credentials[variable] = spec.Secret{Env: variable}, value
	return nil
}

// getenv returns a variable of the environment, or a credential of the editor's servers.
func (s *Server) getenv(other func(string) string) func(string) string {
	if other == nil {
		other = os.Getenv
	}
	return func(name string) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if value, known := s.credentials[name]; known {
			return value
		}
		return other(name)
	}
}

// question asks whether to trust the servers in a directory.
func (e editorServers) question(dir string) (guidance.Question, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return guidance.Question{}, fmt.Errorf("acpserver: %w", err)
	}
	q := guidance.Question{
		Root: dir, Digest: fmt.Sprintf("mcp %x", sha256.Sum256(text)),
		Why: "They are MCP servers of the editor. The agent may call their tools without further questions.",
	}
	for _, m := range e.Servers {
		q.What = append(q.What, terminal.Marked(m.Server+": "+strings.Join(slices.Concat(m.Command, []string{m.URL}), " ")))
	}
	return q, nil
}

// serve adds the editor's servers to a file if the editor's user trusts them. The note says
// which are left out.
func (s *Server) serve(ctx context.Context, id acp.SessionId, dir string, f kinds.File) (file kinds.File, note string, err error) {
	o, err := s.session(id)
	if err != nil || len(o.servers.Servers) == 0 {
		return f, "", err
	}
	q, err := o.servers.question(dir)
	if err != nil {
		return f, "", err
	}
	answer, err := s.Trust.Ask(ctx, q, s.asksTrust(id))
	if err != nil {
		return f, "", err
	}
	if answer != guidance.Yes {
		return f, "not used, because you do not trust them: the MCP servers of the editor: " + strings.Join(q.What, "; "), nil
	}
	a, err := spec.ParseAgent(f.Path, f.Text, s.Host.Launch.Checks())
	if err != nil {
		return f, "", invalid(fmt.Errorf("the MCP servers of the editor are for an agent file: %w", err))
	}
	for _, m := range o.servers.Servers {
		if slices.ContainsFunc(a.Tools.MCP, func(own spec.MCPServer) bool { return own.Server == m.Server }) {
			return f, "", invalid(fmt.Errorf("the agent file and the editor have an MCP server %s", m.Server))
		}
	}
	a.Tools.MCP = append(a.Tools.MCP, o.servers.Servers...)
	for name, secret := range o.servers.Secrets {
		if a.Tools.Secrets == nil {
			a.Tools.Secrets = spec.Secrets{}
		}
		a.Tools.Secrets[name] = secret
	}
	text, err := a.Text()
	if err != nil {
		return f, "", err
	}
	return kinds.Kept(f.Path, text), "", nil
}
