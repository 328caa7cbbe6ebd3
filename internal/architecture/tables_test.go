package architecture

import (
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/models"
	"github.com/pawlrun/pawl/stop"
	"github.com/pawlrun/pawl/tool/fs"
	"github.com/pawlrun/pawl/tool/result"
	"github.com/pawlrun/pawl/tool/shell"
	"github.com/pawlrun/pawl/tool/web"
)

// generated are the files that a new name of a table comes to by themselves,
// and those that describe keys of files by hand.
var generated = []string{
	"docs/events.md", "docs/agent-file.md", "internal/files/schema/properties.yaml", "event/testdata/stored.golden", "internal/architecture/testdata/api.txt",
}

var comments = regexp.MustCompile(`(?m)//.*$`)

// sources are the texts of the repository's files in which a name of a table
// may stand, by path: Go files but tests, and what is generated from them.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d iofs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "bin" || name == "dist" || name == "examples" || name == "internal/sdkbench"):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			return nil
		case strings.HasSuffix(name, ".go"), slices.Contains(generated, name):
			b, err := os.ReadFile(path)
			found[name] = comments.ReplaceAllString(string(b), "")
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// standsIn lists the files in which a pattern is found, in order, but the
// exceptions, each of which has a reason.
func standsIn(files map[string]string, pattern string, but map[string]string) []string {
	var in []string
	re := regexp.MustCompile(pattern)
	for name, text := range files {
		if _, exception := but[name]; !exception && re.MatchString(text) {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	return in
}

// A new event is its payload with its name and a line of the table; what else names it is
// generated. Who writes and reads one names its type, not its name.
func TestAnEventStandsInFourFiles(t *testing.T) {
	files := sources(t)
	ofEvents := []string{"docs/events.md", "internal/architecture/testdata/api.txt"}
	vocabulary := maps.Clone(files)
	maps.DeleteFunc(vocabulary, func(name, _ string) bool {
		return !strings.HasPrefix(name, "event/") && !slices.Contains(ofEvents, name)
	})
	few := map[string]string{
		"event/approval.go":            "what of an event is about the permission of a call",
		"event/blob.go":                "what holds images or large texts",
		"event/decided.go":             "what of an event differs between runs that do the same",
		"event/frequent.go":            "what every cycle writes, without reflection",
		"event/tool.go":                "what of an event is about the tools of its run",
		"event/testdata/stored.golden": "what its tags do not pin",
	}
	for _, d := range event.All() {
		name := string(d.EventType())
		if in := standsIn(vocabulary, `(?m)(^|[^.\w])`+reflect.TypeOf(d).Name()+`\b`, few); len(in) > 4 {
			t.Errorf("%s stands in %d files: %v", name, len(in), in)
		}
		if !strings.Contains(name, ".") {
			continue // a common word
		}
		if in := standsIn(files, `"`+regexp.QuoteMeta(name)+`"`, vocabulary); len(in) > 0 {
			t.Errorf("%v name %s instead of its type", in, name)
		}
	}
}

// A new limit is its field and a line of the table; the page of agent files is
// generated. The machine may name the field of one that it enforces itself, what
// reads files, flags and commands may not.
func TestALimitStandsInTwoFiles(t *testing.T) {
	files := sources(t)
	for _, s := range budget.Table() {
		if in := standsIn(files, `\b`+s.Name+`\b`, map[string]string{
			"internal/architecture/testdata/api.txt": "the pinned surface",
			"docs/events.md":                         "what its head says of keys",
			"internal/files/schema/properties.yaml":  "an example of budgets and actions",
			"internal/cli/run_flags.go":              "an example in a flag's help",
			"internal/cli/run.go":                    "an example in a command's help",
			"internal/cli/runs_budget.go":            "an example in a command's help",
			"internal/cli/runs_fork.go":              "an example in a command's help",
			"journal/journaltest/inbox.go":           "a command to store",
			"llm/openai/request.go":                  "a provider's own name",
			"internal/machine/agent/outcome.go":      "advice to people",
			"internal/machine/agent/compact.go":      "advice to people",
			"internal/files/launch/options.go":       "advice to people",
			"internal/files/spec/agent.go":           "the key of the cost, which is none of budgets",
			"internal/files/spec/settings.go":        "the key of the cycle cap, which is none of budgets",
			"internal/files/spec/validate.go":        "the same",
			"internal/files/spec/iteration.go":       "the same",
		}); len(in) > 2 {
			t.Errorf("%s stands in %d files: %v", s.Name, len(in), in)
		}
		if s.Name == budget.CycleCap || s.Name == budget.CostPerRun {
			continue // they have keys and flags of their own
		}
		for _, in := range standsIn(files, `\b`+s.Field()+`\b`, map[string]string{
			"internal/cli/progress.go":         "which limits are said of every run",
			"internal/files/spec/models.go":    "which cap in money a file sets",
			"internal/files/workflow/plan.go":  "what the workflow specification calls maxRetries",
			"internal/files/launch/agents.go":  "an agent that another one offers has no wall time of its own",
			"internal/files/launch/options.go": "which of the two caps in money --budget replaces",
		}) {
			if within(in, []string{"internal/files/spec", "internal/files/workflow", "internal/files/launch", "internal/engine/control", "internal/server", "internal/cli"}) {
				t.Errorf("%s names %s", in, s.Field())
			}
		}
	}
}

// A new kind of condition is a line of the table; its own keys are added to those of a
// condition, and to their documentation.
func TestAConditionStandsInFourFiles(t *testing.T) {
	files := sources(t)
	for _, kind := range stop.Kind("").Choices() {
		goName := `(?i)\bstop\.` + strings.ReplaceAll(kind, "-", "") + `\b`
		if in := standsIn(files, `(^|[^-\w])`+kind+`\b|`+goName, map[string]string{
			"internal/files/spec/budgets.go":         "what it tells people of one that disagrees with another key",
			"internal/architecture/testdata/api.txt": "the pinned surface",
		}); len(in) > 4 {
			t.Errorf("%s stands in %d files: %v", kind, len(in), in)
		}
	}
}

// A new provider is a line of the table, and one of the profiles where it is
// compatible in its own way.
func TestAProviderStandsInTwoFiles(t *testing.T) {
	files := sources(t)
	maps.DeleteFunc(files, func(name, _ string) bool {
		return within(name, beside) || !strings.HasSuffix(name, ".go") // gates and what prices come from
	})
	wires := map[string]string{
		"llm/anthropic/anthropic.go":   "the wire itself",
		"llm/gemini/gemini.go":         "the wire itself",
		"llm/openai/openai.go":         "the wire itself",
		"llm/openaichat/openaichat.go": "the wire itself",
		"llm/conform/conform.go":       "the rules of the four wires",
	}
	for _, name := range models.KnownProviders() {
		if in := standsIn(files, `"`+name+`"`, wires); len(in) > 2 {
			t.Errorf("%s stands in %d files: %v", name, len(in), in)
		}
	}
	if in := standsIn(files, `"[A-Z]+(_[A-Z]+)?_(API_KEY|AUTH_TOKEN|BASE_URL)"|"OLLAMA_HOST"`, nil); len(in) != 1 {
		t.Errorf("variables of providers stand in %v", in)
	}
}

// A new tool is its own file and its place in a list. Nothing else knows it by its
// name, so that tools which come when a run begins are tools like any other.
func TestAToolStandsInTwoFiles(t *testing.T) {
	files := sources(t)
	brought := append(new(fs.Workspace).Tools(), web.New(web.Options{}), shell.New(shell.Options{}), result.New())
	for _, x := range brought {
		if in := standsIn(files, `"`+regexp.QuoteMeta(x.Name)+`"`, map[string]string{
			"internal/machine/command.go":            "by whose rules a machine's commands are judged",
			"internal/architecture/testdata/api.txt": "the same",
		}); len(in) != 1 {
			t.Errorf("%s stands in %d files: %v", x.Name, len(in), in)
		}
	}
}
