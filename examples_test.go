package pawl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/journal/sqlite"
	"github.com/pawlrun/pawl/llm/scripted"
	"github.com/pawlrun/pawl/tool"
)

// An agent with one tool.
func Example_hello() {
	type place struct {
		City string `json:"city"`
	}
	weather := pawl.Tool("weather", "Say what the weather is.", func(_ context.Context, p place) (string, error) {
		return "It rains in " + p.City + ".", nil
	})
	agent := pawl.Agent{
		Tools: []tool.Tool{weather},
		Model: pawl.Target{Name: "scripted/hello", Client: scripted.New("hello",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "weather", Arguments: json.RawMessage(`{"city":"Bergen"}`)}}},
			scripted.Turn{Text: "Take an umbrella."},
		)},
	}
	final, err := agent.Run(context.Background(), "How do I dress in Bergen?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Status, final.Text())
	// Output: completed Take an umbrella.
}

// The program decides about each call of a tool.
func Example_approval() {
	agent := pawl.Agent{
		Tools: []tool.Tool{pawl.Tool("deploy", "Deploy to a stage.", func(_ context.Context, p struct{ Stage string }) (string, error) {
			return "deployed to " + p.Stage, nil
		})},
		Approvals: pawl.Approvals{
			Tools: []string{"deploy"},
			Ask: func(_ context.Context, a pawl.Approval) (pawl.Decision, error) {
				approve := strings.Contains(string(a.Args), "staging")
				fmt.Printf("%s %s: %t\n", a.Tool, a.Args, approve)
				return pawl.Decision{Approve: approve, Reason: "production is deployed on Mondays"}, nil
			},
		},
		Model: pawl.Target{Name: "scripted/approval", Client: scripted.New("approval",
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "deploy", Arguments: json.RawMessage(`{"Stage":"staging"}`)}}},
			scripted.Turn{ToolCalls: []scripted.Call{{Name: "deploy", Arguments: json.RawMessage(`{"Stage":"production"}`)}}},
			scripted.Turn{Text: "Staging has it; production waits for Monday."},
		)},
	}
	final, err := agent.Run(context.Background(), "Ship it.")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(final.Text())
	// Output:
	// deploy {"Stage":"staging"}: true
	// deploy {"Stage":"production"}: false
	// Staging has it; production waits for Monday.
}

// A workflow whose journal is on disk: another process that opens the journal reads how
// it ended, and could have resumed it where it was.
func Example_durableWorkflow() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "journal.db")
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	w := pawl.Workflow{
		Name: "release-notes",
		Agents: map[string]pawl.Agent{"writer": {
			Model: pawl.Target{Name: "scripted/writer", Client: scripted.New("writer", scripted.Turn{Text: "Two bugs are fixed."})},
		}},
		Steps: []pawl.Step{
			{ID: "commits", Func: func(context.Context, pawl.Values) (pawl.Output, error) {
				return pawl.Output{Text: "fix: a\nfix: b"}, nil
			}},
			{ID: "notes", DependsOn: []string{"commits"}, Agent: "writer", Instructions: "Write the release notes."},
		},
	}
	run, err := w.Start(ctx, "v1.2.3", pawl.Options{Journal: store})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Wait(); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	store, err = sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	state, err := pawl.Inspect(ctx, store, run.ID())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(state.Status, state.Text())
	// Output: completed Two bugs are fixed.
}

// Each program above needs at most three packages of this module.
func TestAFirstProgramNeedsThreeImports(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "examples_test.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, i := range file.Imports {
		if path := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(path, "github.com/pawlrun/pawl") {
			ours[path[strings.LastIndex(path, "/")+1:]] = true
		}
	}
	programs := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		programs++
		uses := map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && ours[x.Name] {
					uses[x.Name] = true
				}
			}
			return true
		})
		if len(uses) == 0 || len(uses) > 3 {
			t.Errorf("%s uses %v", f.Name.Name, uses)
		}
	}
	if programs != 3 {
		t.Errorf("%d programs", programs)
	}
}
