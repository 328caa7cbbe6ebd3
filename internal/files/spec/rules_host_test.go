package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestTheHostOfARuleIsOneThatACallCanHave(t *testing.T) {
	const file = `identity: {name: a, version: 0.1.0, description: d}
model_policy: {primary: {model: scripted/s.yaml}}
prompt: {system: s}
tools:
  allow: [shell.exec]
  rules: [{deny: shell.exec, host: %q}]
`
	for host, ok := range map[string]bool{
		"example.net": true, "EXAMPLE.net": true, "*.example.net": true, "*": true, "10.*": true, "192.0.2.1": true, "fe80::*": true, "2001:db8::1": true,
		"xn--bcher-kva.example": true, "example.net:8443": false, "*.example.net:443": false, "https://example.net": false, "example.net/x": false,
		"b\u00fccher.example": false, "10.0.0.0/8": false, "example.net.": false, "[::1]": false,
	} {
		_, err := spec.ParseAgent("a.yaml", fmt.Appendf(nil, file, host), rules)
		if refused := err != nil && strings.Contains(err.Error(), "matches no host"); refused == ok || ok && err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
