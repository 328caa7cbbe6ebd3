package servers

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/tool/mcp"
)

// Messages name the file by the path of the command line.
func TestMessagesAboutServersNameTheFile(t *testing.T) {
	dir := t.TempDir()
	for file, command := range map[string]string{"goal.yaml#agents.last-iteration": dir + "/goal.yaml docs", "my agent.yaml": "'" + dir + "/my agent.yaml' docs"} {
		a := &spec.Agent{Dir: dir, File: file}
		server := spec.MCPServer{Server: "docs", URL: "https://example.com/mcp", Pins: "docs.pins.yaml"}
		if err := checkPins(a, server, &mcp.Server{}); err == nil || !strings.Contains(err.Error(), "pawl mcp pin "+command+"'") {
			t.Errorf("%s: the pins: %v", file, err)
		}
		if text := unauthorized(server, a); !strings.Contains(text, "oauth: {}") || !strings.HasSuffix(text, "pawl mcp login "+command) {
			t.Errorf("%s: a login: %s", file, text)
		}
		server.Headers = map[string]string{"authorization": "Bearer x"}
		if text := unauthorized(server, a); strings.Contains(text, "oauth") || !strings.Contains(text, "header authorization") {
			t.Errorf("%s: a header: %s", file, text)
		}
	}
}
