// Package architecture holds the tests of the layers: which package may
// import which, and that the map in docs/architecture.md lists the same.
package architecture

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pawlrun/pawl"

type layer struct {
	name     string
	packages []string
	within   bool
}

// layers lists the packages from the bottom up. A package may import packages of
// lower layers, and of its own layer where that says so.
var layers = []layer{
	{name: "words", packages: []string{"llm"}},
	{name: "vocabulary", packages: []string{"event"}},
	{name: "guards", packages: []string{"internal/host/egress", "internal/rules/fence", "internal/rules/access"}},
	{name: "evaluators", packages: []string{"internal/rules/eval"}},
	{name: "rules", packages: []string{"stop", "budget", "internal/rules/question", "internal/rules/policy", "internal/rules/history", "internal/rules/compact", "internal/rules/plan"}},
	{name: "machine contract", packages: []string{"internal/machine"}},
	{name: "tree of runs", packages: []string{"internal/machine/tree", "internal/machine/refine", "internal/machine/goal"}},
	{name: "machines", packages: []string{"internal/machine/agent", "internal/machine/flow", "internal/machine/process"}},
	{name: "table of machines", packages: []string{"internal/machine/versions"}},
	{name: "characters", packages: []string{"internal/view/terminal"}},
	{name: "view", packages: []string{"internal/view"}},
	{name: "edge contracts", packages: []string{"tool", "hook", "journal", "llm/internal/wire"}},
	{name: "edges", packages: []string{
		"llm/scripted", "llm/replay", "llm/anthropic", "llm/openai", "llm/openaichat", "llm/gemini", "llm/transport", "llm/conform", "llm/internal/lint", "journal/memory", "journal/sqlite", "journal/journaltest",
		"internal/host/tokens", "internal/host/attach", "internal/host/guidance", "internal/host/sandbox", "cel", "tool/external", "tool/find", "tool/fs", "tool/internal/search", "tool/mcp", "tool/result", "tool/shell", "tool/skill", "tool/web", "internal/host/resolve", "models", "internal/host/secret", "internal/host/login", "internal/host/programlog", "hook/command", "internal/files/expr", "internal/host/worktree", "internal/host/workplace", "internal/host/published",
	}, within: true},
	{name: "what drivers share", packages: []string{"internal/engine/drive", "internal/engine/follow", "internal/engine/holder"}},
	{name: "effects", packages: []string{"internal/engine/perform"}},
	{name: "replays", packages: []string{"internal/engine/replay", "internal/engine/compare"}},
	{name: "decoder", packages: []string{"internal/files/decode"}},
	{name: "drivers", packages: []string{"internal/engine", "internal/files/spec"}},
	{name: "workflow files", packages: []string{"internal/files/workflow"}},
	{name: "printed schemas", packages: []string{"internal/files/schema"}},
	{name: "assembly", packages: []string{"internal/files/assembly"}},
	{name: "servers of files", packages: []string{"internal/files/servers"}},
	{name: "files", packages: []string{"internal/files/launch"}},
	{name: "loops of a command line", packages: []string{"internal/files/loopflags"}},
	{name: "table of kinds", packages: []string{"internal/files/kinds"}},
	{name: "suites", packages: []string{"internal/files/suite"}},
	{name: "control", packages: []string{"internal/engine/control"}},
	{name: "budgets of tenants", packages: []string{"internal/tenants"}},
	{name: "evaluations", packages: []string{"internal/evaluation"}},
	{name: "library", packages: []string{""}},
	{name: "encodings", packages: []string{"internal/server/agui", "internal/server/rondo", "internal/server/socketio"}},
	{name: "connections", packages: []string{"internal/server/socketio/session"}},
	{name: "signals", packages: []string{"internal/signals"}},
	{name: "page", packages: []string{"internal/web"}},
	{name: "peers", packages: []string{"internal/server/peer"}},
	{name: "server", packages: []string{"internal/server"}},
	{name: "sessions", packages: []string{"internal/sessions"}},
	{name: "for other programs", packages: []string{"internal/mcpserver", "internal/acpserver"}},
	{name: "terminal", packages: []string{"internal/cli/markdown", "internal/cli/live"}},
	{name: "surfaces", packages: []string{"internal/cli", "telemetry", "examples/support-desk"}},
	{name: "program", packages: []string{"cmd/pawl"}},
}

// beside holds what only tests and generators use; no layer has it.
var beside = []string{
	"internal/architecture", "internal/bfcl", "internal/cachesim", "internal/crash", "internal/figures", "internal/golden", "internal/install", "internal/loopbench",
	"internal/mcptest", "internal/memnet", "internal/modelprices", "internal/mutate", "internal/processor", "internal/requirements", "internal/simulate", "internal/testreport",
	"internal/toy", "internal/trajectory", "internal/wiregate",
}

// edgeMayNotImport is the rule that layers alone do not say: what touches the
// world knows nothing of the rules and machines that decide.
var edgeMayNotImport = []string{"stop", "budget", "internal/rules/question", "internal/rules/policy", "internal/rules/history", "internal/rules/compact", "internal/machine", "internal/machine/tree", "internal/machine/agent", "internal/machine/flow", "internal/machine/process", "internal/machine/versions"}

func layerOf(pkg string) (int, bool) {
	for i, l := range layers {
		if slices.Contains(l.packages, pkg) {
			return i, true
		}
	}
	return 0, false
}

type listed struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func local(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func TestImportsPointDownOnly(t *testing.T) {
	for _, p := range list(t) {
		pkg, _ := local(p.ImportPath)
		if within(pkg, beside) {
			continue
		}
		from, ok := layerOf(pkg)
		if !ok {
			t.Errorf("%s is in no layer: add it to layers and to docs/architecture.md", pkg)
			continue
		}
		for _, imp := range p.Imports {
			to, ok := local(imp)
			if !ok || within(to, beside) {
				continue
			}
			at, known := layerOf(to)
			switch {
			case !known:
				t.Errorf("%s imports %s, which is in no layer", pkg, to)
			case at > from, at == from && !layers[from].within:
				t.Errorf("%s (%s) imports %s (%s): an import points up", pkg, layers[from].name, to, layers[at].name)
			case strings.HasPrefix(layers[from].name, "edge") && slices.Contains(edgeMayNotImport, to):
				t.Errorf("%s imports %s: an edge knows no rule and no machine", pkg, to)
			}
		}
	}
}

// TestTheMapListsTheSameLayers holds the table of docs/architecture.md to layers.
func TestTheMapListsTheSameLayers(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| layer | packages | job |\n| --- | --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed, want []string
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		packages := regexp.MustCompile("`[^`]+`").FindAllString(cells[2], -1)
		slices.Sort(packages)
		listed = append(listed, strings.TrimSpace(cells[1])+": "+strings.Join(packages, " "))
	}
	for _, l := range layers {
		var packages []string
		for _, p := range l.packages {
			packages = append(packages, "`"+cmp.Or(p, "pawl")+"`")
		}
		slices.Sort(packages)
		want = append(want, l.name+": "+strings.Join(packages, " "))
	}
	if !slices.Equal(listed, want) {
		t.Errorf("docs/architecture.md lists\n%s\nand layers has\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}

// TestOnlyTheTerminalReadsMarkdown keeps the parser out of what programs embed.
func TestOnlyTheTerminalReadsMarkdown(t *testing.T) {
	found := 0
	for _, p := range list(t) {
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "github.com/yuin/goldmark") {
				continue
			}
			if pkg, _ := local(p.ImportPath); pkg != "internal/cli/markdown" {
				t.Errorf("%s imports %s", pkg, imp)
			}
			found++
		}
	}
	if found == 0 {
		t.Error("nobody reads Markdown")
	}
}

// TestPurePackagesDoNoIO keeps I/O, clocks and randomness out of what must
// be foldable.
func TestPurePackagesDoNoIO(t *testing.T) {
	pure := []string{"llm", "event", "internal/server/socketio", "internal/host/egress", "internal/rules/fence", "internal/rules/access", "stop", "budget", "internal/rules/question", "internal/rules/policy", "internal/rules/history", "internal/rules/compact", "internal/rules/plan", "internal/machine/refine", "internal/machine", "internal/machine/tree", "internal/machine/agent", "internal/machine/flow", "internal/machine/process", "internal/machine/versions", "internal/view", "internal/view/terminal"}
	banned := []string{"os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "io/fs", "database/sql"}
	for _, p := range list(t) {
		pkg, _ := local(p.ImportPath)
		if !slices.Contains(pure, pkg) {
			continue
		}
		for _, imp := range p.Imports {
			if slices.Contains(banned, imp) {
				t.Errorf("%s imports %s; it must stay pure", pkg, imp)
			}
		}
	}
}

// The top level is the drawing: its folders are few, and the page lists each. One of
// them is the second module (docs/decisions/0094).
func TestTheTopLevelIsTheDrawing(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(page), "## The folders")
	drawing, _, _ = strings.Cut(drawing, "\n## ")
	out, err := exec.Command("git", "-C", "../..", "ls-tree", "--name-only", "HEAD").Output()
	if err != nil {
		t.Skip("this is no git checkout")
	}
	entries := 0
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".go") || name == "testdata" {
			continue // settings of tools, and package pawl, which is one room
		}
		entries++
		if info, err := os.Stat("../../" + name); err == nil && info.IsDir() && !regexp.MustCompile(`(?m)^(.* )?`+name+`(/\S*)?( .*)?$`).MatchString(drawing) {
			t.Errorf("docs/architecture.md does not draw %s", name)
		}
	}
	if entries > 21 {
		t.Errorf("the top level has %d entries", entries)
	}
}
