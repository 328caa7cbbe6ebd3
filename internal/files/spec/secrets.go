package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/internal/files/decode"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/secret"
	"github.com/pawlrun/pawl/internal/machine"
)

// Secrets are the secret values that calls may refer to, by name.
type Secrets map[string]Secret

func (*Secrets) Expected() string {
	return "a mapping from a name to where the secret is and who may have it"
}

// Secret says where a secret is and which tools may have it. A file never contains the
// value.
type Secret struct {
	// Env is the variable, File the file that contains it; a relative path is relative
	// to the agent file, and a final line end is removed.
	Env  string `yaml:"env,omitempty"`
	File string `yaml:"file,omitempty"`
	// Tools may have it. A command of shell.exec gets it as a variable.
	Tools []string `yaml:"tools,omitempty"`
	// Hosts are the only hosts that a call with it may reach.
	Hosts []string `yaml:"hosts,omitempty"`
}

func (t *Tools) validateSecrets(r *decode.Report, o Options) {
	for _, name := range slices.Sorted(maps.Keys(t.Secrets)) {
		path := decode.Join("tools.secrets", name)
		s := t.Secrets[name]
		if !secret.ValidName(name) {
			r.At(path, "letters, digits and _", "%q is not a name of a variable", name)
		}
		switch {
		case s.Env == "" && s.File == "":
			r.At(path, "one of env and file", "does not say where the secret is")
		case s.Env != "" && s.File != "":
			r.At(path, "one of env and file", "says twice where the secret is")
		}
		if len(s.Tools) == 0 && !t.hasSecret(name) && !t.serverHasSecret(name) {
			decode.Missing(r, path+".tools", "the tools that may have it")
		}
		for i, tool := range s.Tools {
			t.usable(r, fmt.Sprintf("%s.tools[%d]", path, i), tool, o)
		}
		for i, host := range s.Hosts {
			at := fmt.Sprintf("%s.hosts[%d]", path, i)
			switch pattern := egress.Pattern(host); {
			case !pattern.Valid():
				r.At(at, "a host such as api.example.com", "%q is not a host", host)
			case pattern.HasPort():
				r.At(at, "a host without a port", "%q would not hold, because a secret is for every port of a host", host)
			}
		}
		if len(s.Hosts) > 0 && slices.Contains(s.Tools, machine.CommandTool) {
			r.At(path+".hosts", "no hosts, or tools without "+machine.CommandTool, "would not hold, because a command may send it anywhere")
		}
	}
}
