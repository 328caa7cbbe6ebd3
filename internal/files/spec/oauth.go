package spec

import (
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// OAuth is how a run logs in at an MCP server that wants it. A person logs in with
// 'pawl mcp login'.
type OAuth struct {
	// Scopes replace those that the server names.
	Scopes []string `yaml:"scopes,omitempty"`
	// ClientID is the URL of a client metadata document, or the id of a client that is
	// registered with the authorization server; without one, each login registers a
	// client. ClientSecret is ${secret:NAME}.
	ClientID     string `yaml:"client_id,omitempty"`
	ClientSecret string `yaml:"client_secret,omitempty"`
}

// scopeToken is what a scope may be (RFC 6749, 3.3).
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]{1,200}$`)

// Secret returns the name of the client's secret, empty for none.
func (o *OAuth) Secret() string {
	if o == nil {
		return ""
	}
	if found := secretReference.FindStringSubmatch(o.ClientSecret); found != nil && found[0] == o.ClientSecret {
		return found[1]
	}
	return ""
}

// validateOAuth checks the login at a server.
func (s *MCPServer) validateOAuth(r *decode.Report, path string, secrets Secrets) {
	o := s.OAuth
	if o == nil {
		return
	}
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		r.At(path, "a server with url", "only a server that is reached over HTTP has a login")
	case err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		r.At(path, "a url that begins with https://", "the tokens would be sent to %s unencrypted", u.Hostname())
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			r.At(path, "oauth or the header Authorization, one of the two", "both are given")
		}
	}
	for _, scope := range o.Scopes {
		if !scopeToken.MatchString(scope) {
			r.At(path+".scopes", "scopes without blanks, quotes and \\", "%q is not one", scope)
		}
	}
	at := path + ".client_secret"
	switch name := o.Secret(); {
	case o.ClientSecret == "":
	case name == "":
		r.At(at, "${secret:NAME} with a name of tools.secrets", "the secret itself may not stand in the file")
	case !secrets.has(name):
		r.At(at, "a name of tools.secrets", "%q is not one", name)
	case len(secrets[name].Hosts) > 0:
		r.At(at, "a secret without hosts", "the hosts of %s would not hold, because it goes to the authorization server that the MCP server names", name)
	case o.ClientID == "":
		r.At(at, "client_id beside client_secret", "it is the secret of no client")
	}
}

// Path returns the path of the file that the agent is in.
func (a *Agent) Path() string {
	return filepath.Join(a.Dir, SourceOf(a.File).File)
}
