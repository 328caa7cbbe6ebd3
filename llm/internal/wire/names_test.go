package wire_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

var allowedName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestEveryNameIsAllowedDistinctAndComesBack(t *testing.T) {
	names := []string{"fs.read", "fs_read", "fs-read", "fs read", "größe", "", strings.Repeat("long.", 40), strings.Repeat("long.", 40) + "x", "mcp/server:tool"}
	var tools []llm.ToolDef
	for _, name := range names {
		tools = append(tools, llm.ToolDef{Name: name})
	}
	n := wire.NewNames(tools, 64)
	seen := map[string]string{}
	for _, name := range names {
		w := n.Wire(name)
		if !allowedName.MatchString(w) {
			t.Errorf("%q becomes %q", name, w)
		}
		if other, taken := seen[w]; taken {
			t.Errorf("%q and %q are both %q", name, other, w)
		}
		seen[w] = name
		if back := n.Local(w); back != name {
			t.Errorf("%q comes back as %q", name, back)
		}
	}
	if n.Wire("fs.read") != "fs_read" {
		t.Errorf("the plain mapping is lost: %q", n.Wire("fs.read"))
	}
	if n.Clashes() == "" || wire.NewNames(tools[:1], 64).Clashes() != "" {
		t.Error("clashes are not told apart from the plain mapping")
	}
}

func TestAToolThatIsNotOfferedKeepsItsName(t *testing.T) {
	n := wire.NewNames(nil, 64)
	if n.Wire("old.tool") != "old_tool" || n.Local("never_offered") != "never_offered" {
		t.Errorf("%q, %q", n.Wire("old.tool"), n.Local("never_offered"))
	}
}
