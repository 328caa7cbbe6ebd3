package fs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/tool"
)

// A long line is cut. Where the cut went through a secret, half of it would be
// left, which nobody takes out any more.
func TestTheCutOfALineLeavesNoHalfOfASecret(t *testing.T) {
	const secret = "sk-0123456789-abcdefghij-0123456789"
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "(a secret)") }
	p := newPlace(t, nil)
	for at := range 2100 {
		if at > 300 && at < 1930 {
			continue
		}
		p.put("f", strings.Repeat("é", at/2)+strings.Repeat(".", at%2)+"KEY="+secret+strings.Repeat("ü", 200)+"\nnext\n")
		for name, args := range map[string]string{
			"fs.read": `{"path":"f"}`, "fs.grep": `{"pattern":"KEY=","path":"f"}`, "fs.grep, of what is before it": `{"pattern":"^.","path":"f"}`,
			"fs.grep, of the secret": `{"pattern":"0123456789$|-abc|ü$","path":"f"}`,
		} {
			called, _, _ := strings.Cut(name, ",")
			found, _ := p.set.Lookup(called)
			r, err := found.Run(t.Context(), tool.Call{ID: "c", Args: json.RawMessage(args), Redact: redact})
			if err != nil {
				t.Fatal(err)
			}
			if left := redact(r.Output); strings.Contains(left, "sk-") || strings.Contains(left, "0123") || strings.Contains(left, "789") {
				t.Fatalf("%s, at %d: %s", name, at, left)
			}
			if name == "fs.read" && !strings.Contains(r.Output, "next") || name == "fs.grep" && !strings.Contains(r.Output, "KEY=") {
				t.Fatalf("%s, at %d: %s", name, at, r.Output)
			}
		}
	}
}
