package spec

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// refuseFiles reports everything that would be read or started on this machine, and
// removes it, so that later checks do not see it.
func (a *Agent) refuseFiles(r *decode.Report) {
	refuse := func(path, expected string) {
		r.At(path, expected, "names a file of this machine, which a file that was sent may not")
	}
	if a.Prompt.SystemFile != "" {
		refuse("prompt.system_file", "prompt.system with the text itself")
		a.Prompt.SystemFile = ""
	}
	if len(a.Instructions) > 0 {
		refuse("instructions", "prompt.system with the text itself")
		a.Instructions = nil
	}
	if len(a.Skills) > 0 {
		refuse("skills", "prompt.system with the text itself")
		a.Skills = nil
	}
	if a.ResultSchema != nil && a.ResultSchema.File != "" {
		refuse("resultSchema", "the JSON Schema itself")
		a.ResultSchema.File = ""
	}
	for i := range a.Tools.Agents {
		refuse(fmt.Sprintf("tools.agents[%d].file", i), "a file without it, or an agent of the agents directory")
	}
	a.Tools.Agents = nil
	for i := range a.Tools.Commands {
		r.At(fmt.Sprintf("tools.commands[%d]", i), "a file without it, or an agent of the agents directory", "starts a program of this machine, which a file that was sent may not")
	}
	a.Tools.Commands = nil
	if a.Composite != nil {
		refuse("composite", "a file without it, or an agent of the agents directory")
	}
	if len(a.Hooks.All()) > 0 {
		r.At("hooks", "a file without it, or an agent of the agents directory", "starts programs of this machine, which a file that was sent may not")
		a.Hooks = nil
	}
	if a.Loop != nil && a.Loop.Runner != nil {
		r.At("loop.runner", "a file without it, or an agent of the agents directory", "starts a program of this machine, which a file that was sent may not")
		a.Loop.Runner = nil
	}
	for i := range a.Tools.MCP {
		r.At(fmt.Sprintf("tools.mcp[%d]", i), "a file without it, or an agent of the agents directory", "starts a program of this machine or reaches another one, which a file that was sent may not")
	}
	if a.Tools.MCPFile != "" {
		refuse("tools.mcp_file", "a file without it, or an agent of the agents directory")
	}
	a.Tools.MCP, a.Tools.MCPFile = nil, ""
	for _, name := range slices.Sorted(maps.Keys(a.Tools.Secrets)) {
		r.At(decode.Join("tools.secrets", name), "a file without it, or an agent of the agents directory", "is a secret of this machine, which a file that was sent may not name")
	}
	a.Tools.Secrets = nil
}
