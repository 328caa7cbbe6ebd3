package secret_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/egress"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/secret"
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
		host, _, _ := strings.Cut(strings.TrimPrefix(r.URL, "https://"), "/")
		return event.Facts{Hosts: []string{host}}
	}
	return t
}

func TestASecretGoesToItsToolsAndItsHostsAlone(t *testing.T) {
	secrets := []secret.Secret{
		{Name: "API", Value: `pass"word\1`, Tools: []string{"send"}, Hosts: []egress.Pattern{"api.example.com"}},
		{Name: "ANY", Value: "anywhere-at-all", Tools: []string{"send"}},
		{Name: "OTHER", Value: "of-another-tool", Tools: []string{"run"}},
		{Name: "HOST", Value: "evil.example.com", Tools: []string{"send"}},
	}
	for _, c := range []struct {
		name, url, token string
		want, refused    string
	}{
		{name: "its tool and host", url: "https://api.example.com/", token: "${secret:API}", want: `https://api.example.com/ pass"word\1`},
		{name: "amid a text", url: "https://api.example.com/", token: "Bearer ${secret:API}!", want: `https://api.example.com/ Bearer pass"word\1!`},
		{name: "another host", url: "https://example.com/", token: "${secret:API}", refused: "the secret API is not for example.com"},
		{name: "any host", url: "https://example.com/", token: "${secret:ANY}", want: "https://example.com/ anywhere-at-all"},
		{name: "another tool's", url: "https://example.com/", token: "${secret:OTHER}", refused: "the secret OTHER is not for send"},
		{name: "as the host", url: "https://${secret:HOST}/", refused: "may not be part of the host"},
		{name: "unknown to us", url: "https://example.com/", token: "${secret:NOBODY}", want: "https://example.com/ ${secret:NOBODY}"},
		{name: "none", url: "https://example.com/", token: "open", want: "https://example.com/ open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrapped := secret.Broker([]tool.Tool{send("send")}, secrets)[0]
			args, err := json.Marshal(request{URL: c.url, Token: c.token})
			if err != nil {
				t.Fatal(err)
			}
			facts := wrapped.Facts(args)
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

func TestASecretForAHostIsRefusedWhenNobodyKnowsWhereTheCallGoes(t *testing.T) {
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

func TestWhatIsWrongWithASecretIsSaidWithoutItsValue(t *testing.T) {
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
