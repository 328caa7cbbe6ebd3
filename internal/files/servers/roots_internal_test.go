package servers

import (
	"slices"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

// A server may work in the workspace, or nowhere if the run has no files.
func TestRootsFollowThePermissions(t *testing.T) {
	const workspace = "/work/project"
	for name, c := range map[string]struct {
		permissions *spec.Permissions
		workspace   string
		want        []string
	}{
		"no permissions": {nil, workspace, []string{workspace}},
		"repo-readonly":  {&spec.Permissions{Filesystem: "repo-readonly"}, workspace, []string{workspace}},
		"full":           {&spec.Permissions{Filesystem: "full"}, workspace, []string{workspace}},
		"none":           {&spec.Permissions{Filesystem: "none"}, workspace, nil},
		"no workspace":   {nil, "", nil},
	} {
		a := &spec.Agent{}
		a.Tools.Permissions = c.permissions
		for _, server := range []spec.MCPServer{{Server: "docs", Command: []string{"docs-server"}}, {Server: "far", URL: "https://far.example.com/mcp"}} {
			a.Tools.MCP = append(a.Tools.MCP, server)
			if got := (&Servers{}).options(server, a, Host{Workspace: c.workspace}).Roots; !slices.Equal(got, c.want) {
				t.Errorf("%s: %s has the roots %v, want %v", name, server.Server, got, c.want)
			}
		}
	}
}
