package mcptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/mcptest"
	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
)

// scenarioVariable is how the conformance suite tells a client what it is to do. The
// address of the server is its last argument.
const scenarioVariable = "MCP_CONFORMANCE_SCENARIO"

func TestMain(m *testing.M) {
	if scenario := os.Getenv(scenarioVariable); scenario != "" {
		if err := client(scenario, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// client calls each tool of a server once, as a run would.
func client(scenario, url string) error {
	ctx := context.Background()
	s, err := mcp.Connect(ctx, mcp.Options{Server: scenario, URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	for _, t := range s.Tools() {
		args := `{}`
		if scenario == "tools_call" {
			args = `{"a":2,"b":3}`
		}
		if _, err := t.Run(ctx, tool.Call{ID: "c1", Key: "k1", Attempt: 1, Args: json.RawMessage(args), Run: agreeable{}}); err != nil {
			return err
		}
	}
	return nil
}

// agreeable is a run whose person sends each form as it is.
type agreeable struct{}

func (agreeable) Keep(context.Context, json.RawMessage) error { return nil }

func (agreeable) Report(float64, float64, string) {}

func (agreeable) Ask(_ context.Context, f event.Form) (event.FormAnswer, error) {
	var form struct {
		Properties map[string]struct {
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(f.Schema, &form); err != nil {
		return event.FormAnswer{}, err
	}
	answer := map[string]json.RawMessage{}
	for name, field := range form.Properties {
		if field.Default != nil {
			answer[name] = field.Default
		}
	}
	input, err := json.Marshal(answer)
	return event.FormAnswer{Kind: event.ApprovalAnswered, Input: input, State: f.State}, err
}

// passed is the line in which the suite counts the checks of a scenario.
var passed = regexp.MustCompile(`Passed: (\d+)/(\d+), (\d+) failed`)

// tooLate is what the suite says of a client on a machine with much else to do.
const tooLate = "reconnected very late"

// The scenarios of the suite that need no login.
func TestTheClientPassesTheConformanceSuite(t *testing.T) {
	dir := mcptest.Packages(t, "@modelcontextprotocol/conformance@0.1.16")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for scenario, most := range map[string]int{"initialize": 1, "tools_call": 1, "elicitation-sep1034-client-defaults": 5, "sse-retry": 1} {
		t.Run(scenario, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, mcptest.Node(dir), filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"), "client", "--command", self, "--scenario", scenario)
			run.Dir = t.TempDir()
			out, _ := run.CombinedOutput() // it fails on warnings, so the counts are read
			counts := passed.FindSubmatch(out)
			if counts == nil {
				t.Fatalf("the suite does not count: %s", out)
			}
			if n, err := strconv.Atoi(string(counts[1])); err != nil || n < most || string(counts[3]) != "0" && !bytes.Contains(out, []byte(tooLate)) {
				t.Errorf("%s, want %d passed and 0 failed: %s", counts[0], most, out)
			}
		})
	}
}
