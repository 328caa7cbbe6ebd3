package secret_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/processor"
	"github.com/pawlrun/pawl/tool"
)

type request struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// send is a tool that gives back what it was called with.
func send(name string) tool.Tool {
	t := tool.New(name, "Send.", func(_ context.Context, r request) (string, error) { return r.URL + " " + r.Token, nil })
	t.Facts = func(args json.RawMessage) event.Facts {
		var r request
		_ = json.Unmarshal(args, &r)
		u, err := url.Parse(r.URL)
		if err != nil {
			return event.Facts{}
		}
		host, _ := egress.CanonicalHost(u.Hostname())
		return event.Facts{Hosts: []string{host}}
	}
	return t
}

func TestASecretGoesToItsToolsAndItsHostsAlone(t *testing.T) {
	secrets := []secret.Secret{
		{Name: "API", Value: `pass"word\1`, Tools: []string{"send"}, Hosts: []egress.Pattern{"api.example.com"}},
		{Name: "ANY", Value: "anywhere-at-all", Tools: []string{"send"}},
		{Name: "OTHER", Value: "of-another-tool", Tools: []string{"run"}},
		{Name: "LOCAL", Value: "of-this-machine", Tools: []string{"send"}, Hosts: []egress.Pattern{"127.0.0.1", "localhost", "127.0.0.1.example.com"}},
		{Name: "HOST", Value: "evil.example.com", Tools: []string{"send"}},
	}
	for _, c := range []struct {
		name, url, token string
		// host is what the tool says that it reaches, where that is not to be
		// seen from the address.
		host          string
		want, refused string
	}{
		{name: "its tool and host", url: "https://api.example.com/", token: "${secret:API}", want: `https://api.example.com/ pass"word\1`},
		{name: "amid a text", url: "https://api.example.com/", token: "Bearer ${secret:API}!", want: `https://api.example.com/ Bearer pass"word\1!`},
		{name: "another host", url: "https://example.com/", token: "${secret:API}", refused: "the secret API is not for example.com"},
		{name: "any host", url: "https://example.com/", token: "${secret:ANY}", want: "https://example.com/ anywhere-at-all"},
		{name: "another tool's", url: "https://example.com/", token: "${secret:OTHER}", refused: "the secret OTHER is not for send"},
		{name: "as the host", url: "https://${secret:HOST}/", refused: "may not be part of the host"},
		{name: "unknown to us", url: "https://example.com/", token: "${secret:NOBODY}", want: "https://example.com/ ${secret:NOBODY}"},
		{name: "unencrypted", url: "http://api.example.com/", token: "${secret:API}", refused: "without encryption, where others can read it; use an https address"},
		{name: "unencrypted, to a port, with a name", url: "HTTP://me@API.example.com.:8080/", token: "${secret:API}", refused: "to api.example.com without encryption"},
		{name: "unencrypted, in disguise", url: "http://api\u3002example.com/", host: "api.example.com", token: "${secret:API}", refused: "to its host without encryption"},
		{name: "this machine", url: "http://127.0.0.1:8080/", token: "${secret:LOCAL}", want: "http://127.0.0.1:8080/ of-this-machine"},
		{name: "this machine by name", url: "http://localhost/", token: "${secret:LOCAL}", want: "http://localhost/ of-this-machine"},
		{name: "a name that begins like this machine's", url: "http://127.0.0.1.example.com/", token: "${secret:LOCAL}", refused: "without encryption"},
		{name: "amid what is said of another host", url: "https://api.example.com/?from=http://example.org/", token: "${secret:API}",
			want: `https://api.example.com/?from=http://example.org/ pass"word\1`},
		{name: "any host, unencrypted", url: "http://example.com/", token: "${secret:ANY}", want: "http://example.com/ anywhere-at-all"},
		{name: "none", url: "https://example.com/", token: "open", want: "https://example.com/ open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrapped := secret.Broker([]tool.Tool{send("send")}, secrets)[0]
			args, err := json.Marshal(request{URL: c.url, Token: c.token})
			if err != nil {
				t.Fatal(err)
			}
			facts := wrapped.Facts(args)
			if c.host != "" {
				facts.Hosts = []string{c.host}
			}
			r, err := wrapped.Run(t.Context(), tool.Call{Args: args, Facts: &facts})
			if c.refused != "" {
				typed, ok := errors.AsType[*tool.Error](err)
				if !ok || typed.Type != event.ErrorDenied || !strings.Contains(typed.Message, c.refused) || strings.Contains(typed.Message, "pass") {
					t.Errorf("gave %q, %v; want a refusal: %s", r.Output, err, c.refused)
				}
				return
			}
			if err != nil || r.Output != c.want {
				t.Errorf("gave %q, %v; want %q", r.Output, err, c.want)
			}
		})
	}
}

// A model may repeat a reference as often as it likes. Each one had the whole call
// looked through, and brought the whole value.
func TestASecretThatIsNamedAgainAndAgainCostsNoMoreThanOnce(t *testing.T) {
	for _, c := range []struct {
		value   string
		refused string
	}{
		{value: strings.Repeat("v", 100)},
		{value: strings.Repeat("v", 1000), refused: "names secrets so often that they are more than 4 MiB"},
	} {
		tools := secret.Broker([]tool.Tool{send("send")}, []secret.Secret{{Name: "S", Value: c.value, Tools: []string{"send"}, Hosts: []egress.Pattern{"api.example.com"}}})
		args, err := json.Marshal(request{URL: "https://api.example.com/", Token: strings.Repeat("${secret:S}", 20_000)})
		if err != nil {
			t.Fatal(err)
		}
		facts := tools[0].Facts(args)
		began := processor.Time(t)
		r, err := tools[0].Run(t.Context(), tool.Call{Args: args, Facts: &facts})
		switch {
		case c.refused == "" && (err != nil || len(r.Output) < 2_000_000):
			t.Errorf("%d bytes, %v", len(r.Output), err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%d bytes, %v", len(r.Output), err)
		}
		if took := processor.Time(t) - began; took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

func TestSecretForHostIsRefusedForUnknownDestination(t *testing.T) {
	blind := send("send")
	blind.Facts = nil
	wrapped := secret.Broker([]tool.Tool{blind}, []secret.Secret{
		{Name: "API", Value: "password-1", Tools: []string{"send"}, Hosts: []egress.Pattern{"api.example.com"}},
	})[0]
	_, err := wrapped.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"url":"https://api.example.com/","token":"${secret:API}"}`)})
	if err == nil || !strings.Contains(err.Error(), "does not say which it reaches") {
		t.Errorf("got %v", err)
	}
}

// A model repeats what it read. Where one line of a key stood, the whole key would
// come into the file or the address that it writes, and where base64 stood, the
// value as it is.
func TestWhatStandsForALineOrAnEncodingIsNotReplacedByTheValue(t *testing.T) {
	deploy := secret.Secret{Name: "DEPLOY", Value: key, Tools: []string{"send"}}
	wrapped := secret.Broker([]tool.Tool{send("send")}, []secret.Secret{deploy})[0]
	for name, text := range map[string]string{
		"a line": keyLine, "base64": base64.StdEncoding.EncodeToString([]byte(key)), "hex": hex.EncodeToString([]byte(key)),
	} {
		read := secret.NewRedactor(deploy).RedactString(text)
		args, err := json.Marshal(request{URL: "https://example.com/", Token: read})
		if err != nil {
			t.Fatal(err)
		}
		r, err := wrapped.Run(t.Context(), tool.Call{Args: args})
		if err != nil || r.Output != "https://example.com/ "+read || read == text {
			t.Errorf("%s was read as %q and sent as %q, %v", name, read, r.Output, err)
		}
	}
}

func TestASecretThatIsAnotherOneInBase64IsKnownByItsOwnName(t *testing.T) {
	plain := secret.Secret{Name: "PLAIN", Value: "correct-horses!"}
	coded := secret.Secret{Name: "CODED", Value: base64.RawStdEncoding.EncodeToString([]byte(plain.Value))}
	if got := secret.NewRedactor(plain, coded).RedactString(coded.Value); got != "${secret:CODED}" {
		t.Errorf("it became %q", got)
	}
}

func TestACommandHasItsSecretAsAVariable(t *testing.T) {
	wrapped := secret.Broker([]tool.Tool{send("shell")}, []secret.Secret{
		{Name: "API", Value: "password-1", Tools: []string{"shell"}},
	}, "shell")[0]
	r, err := wrapped.Run(t.Context(), tool.Call{Args: json.RawMessage(`{"url":"","token":"curl -u ${secret:API}"}`)})
	if err != nil || r.Output != " curl -u ${API}" {
		t.Errorf("gave %q, %v", r.Output, err)
	}
}

func TestAToolSaysWhichSecretsItMayHave(t *testing.T) {
	secrets := []secret.Secret{
		{Name: "B", Value: "password-1", Tools: []string{"send", "shell"}},
		{Name: "A", Value: "password-2", Tools: []string{"send"}},
	}
	wrapped := secret.Broker([]tool.Tool{send("send"), send("shell"), send("none")}, secrets, "shell")
	if d := wrapped[0].Description; !strings.Contains(d, "${secret:A}, ${secret:B}.") || strings.Contains(d, "password") {
		t.Errorf("send: %s", d)
	}
	if d := wrapped[1].Description; !strings.Contains(d, "These variables hold secrets: B.") {
		t.Errorf("shell: %s", d)
	}
	if d := wrapped[2].Description; d != "Send." {
		t.Errorf("none: %s", d)
	}
}

func TestSecretErrorsOmitTheValue(t *testing.T) {
	for _, s := range []secret.Secret{{Name: "A-B", Value: "a-password"}, {Name: "A", Value: "short"}, {Name: "", Value: "a-password"},
		{Name: "A", Value: "a-password", Hosts: []egress.Pattern{"example.com", "example.com:8443"}}} {
		if err := s.Validate(); err == nil || strings.Contains(err.Error(), s.Value) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (secret.Secret{Name: "DB_1", Value: "12345678"}).Validate(); err != nil {
		t.Error(err)
	}
}
