package secret

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/tool"
)

var reference = regexp.MustCompile(`\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}`)

// Broker gives tools their secrets: it replaces the references in the arguments of a
// call by the values. The call is judged and journalled with the references. It refuses
// a call if a secret is not for the tool, if the call reaches other hosts than the
// secret's, or if an address is unencrypted. The descriptions of the tools list their
// secrets.
//
// The tools in variables already have their secrets in the environment: in their
// commands, a reference becomes a reference to the variable, so that the value is never
// on a command line.
func Broker(tools []tool.Tool, secrets []Secret, variables ...string) []tool.Tool {
	if len(secrets) == 0 {
		return tools
	}
	b := broker{secrets: map[string]Secret{}, variables: variables}
	for _, s := range secrets {
		b.secrets[s.Name] = s
	}
	out := make([]tool.Tool, len(tools))
	for i, t := range tools {
		out[i] = b.wrap(t)
	}
	return out
}

// broker holds the secrets of a run, by name.
type broker struct {
	secrets   map[string]Secret
	variables []string
}

func (b broker) wrap(t tool.Tool) tool.Tool {
	run := t.Run
	plain := t
	switch refs := strings.Join(b.of(t.Name), ", "); {
	case refs == "":
	case b.inEnvironment(t.Name):
		t.Description += " These variables hold secrets: " + refs + "."
	default:
		t.Description += " Where an argument needs one of these secrets, write its reference, which is replaced when the call runs: " + refs + "."
	}
	t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		args, err := b.fill(plain, c)
		if err != nil {
			return tool.Result{}, &tool.Error{Type: event.ErrorDenied, Message: err.Error()}
		}
		c.Args = args
		return run(ctx, c)
	}
	return t
}

func (b broker) inEnvironment(tool string) bool { return slices.Contains(b.variables, tool) }

// of lists the references that a tool may use.
func (b broker) of(name string) []string {
	var refs []string
	for _, s := range b.secrets {
		switch {
		case !slices.Contains(s.Tools, name):
		case b.inEnvironment(name):
			refs = append(refs, s.Name)
		default:
			refs = append(refs, Reference(s.Name))
		}
	}
	slices.Sort(refs)
	return refs
}

// maxFilled bounds the bytes that values add to the arguments of one call, which may
// contain a long value many times.
const maxFilled = 4 << 20

// fill replaces references by values. A reference to an undeclared name is plain
// text.
func (b broker) fill(t tool.Tool, c tool.Call) (json.RawMessage, error) {
	var err error
	added, permitted := 0, map[string]bool{}
	filled := reference.ReplaceAllFunc(c.Args, func(ref []byte) []byte {
		s, ok := b.secrets[string(reference.FindSubmatch(ref)[1])]
		if !ok || err != nil {
			return ref
		}
		if !permitted[s.Name] {
			if err = s.permits(t.Name, c); err != nil {
				return ref
			}
			permitted[s.Name] = true
		}
		if b.inEnvironment(t.Name) {
			return []byte("${" + s.Name + "}")
		}
		if added += len(s.Value); added > maxFilled {
			err = fmt.Errorf("the call names secrets so often that they are more than %d MiB", maxFilled>>20)
			return ref
		}
		return []byte(inJSON(s.Value, false))
	})
	if err != nil || string(filled) == string(c.Args) {
		return c.Args, err
	}
	if t.Facts != nil && c.Facts != nil && !slices.Equal(t.Facts(filled).Hosts, c.Facts.Hosts) {
		return nil, fmt.Errorf("a secret may not be part of the host that a call reaches")
	}
	return filled, nil
}

// permits refuses a call that may not use a secret.
func (s Secret) permits(name string, c tool.Call) error {
	if !slices.Contains(s.Tools, name) {
		return fmt.Errorf("the secret %s is not for %s", s.Name, name)
	}
	if len(s.Hosts) == 0 {
		return nil
	}
	if c.Facts == nil || len(c.Facts.Hosts) == 0 {
		return fmt.Errorf("the secret %s is for the hosts %s alone, and this call does not say which it reaches", s.Name, s.hosts())
	}
	for _, host := range c.Facts.Hosts {
		if !slices.ContainsFunc(s.Hosts, func(p egress.Pattern) bool { return p.Match(host, 0) }) {
			return fmt.Errorf("the secret %s is not for %s", s.Name, host)
		}
	}
	if host, found := inPlainSight(c.Args, c.Facts.Hosts); found {
		return fmt.Errorf("the secret %s would go to %s without encryption, where others can read it; use an https address", s.Name, cmp.Or(host, "its host"))
	}
	return nil
}

func (s Secret) hosts() string {
	names := make([]string, len(s.Hosts))
	for i, h := range s.Hosts {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}
