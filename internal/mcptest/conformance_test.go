package mcptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// contextVariable has what else a client needs to know of a scenario, as JSON.
const contextVariable = "MCP_CONFORMANCE_CONTEXT"

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

// client calls each tool of a server, as a run would.
func client(scenario, url string) error {
	var given struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if text := os.Getenv(contextVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	ctx := context.Background()
	s, err := mcp.Connect(ctx, mcp.Options{Server: scenario, URL: url})
	if err != nil {
		return err
	}
	defer s.Close()
	tools := s.Tools()
	for i, t := range tools {
		args := json.RawMessage(`{}`)
		switch scenario {
		case "tools_call":
			args = json.RawMessage(`{"a":2,"b":3}`)
		case "json-schema-2020-12-preservation":
			// One tool is called with the schema of the other one.
			args = json.RawMessage(`{"schema":` + string(tools[(i+1)%len(tools)].Schema) + `}`)
		}
		for _, c := range given.ToolCalls {
			if t.Name == scenario+"."+c.Name {
				args = c.Arguments
			}
		}
		if err := attempts(ctx, t, args); err != nil {
			return err
		}
	}
	return nil
}

// attempts makes a call until it has a result, with what the person answers in between.
func attempts(ctx context.Context, t tool.Tool, args json.RawMessage) error {
	c := tool.Call{ID: "c-" + t.Name, Key: "k-" + t.Name, Args: args, Run: agreeable{}}
	for c.Attempt = 1; ; c.Attempt++ {
		_, err := t.Run(ctx, c)
		needs, asks := errors.AsType[*tool.InputRequired](err)
		if !asks || c.Attempt > 10 {
			return err
		}
		answer, err := agreeable{}.Ask(ctx, needs.Form)
		if err != nil {
			return err
		}
		c.Input = &answer
	}
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

// noLogin are the scenarios that need no login, with the checks that pass at least, by
// the version of the suite.
var noLogin = map[string]map[string]int{
	"0.1.16": {"initialize": 1, "tools_call": 1, "elicitation-sep1034-client-defaults": 5, "sse-retry": 1},
	"0.2.0-alpha.12": {
		"initialize": 1, "tools_call": 2, "elicitation-sep1034-client-defaults": 5, "sse-retry": 1, "request-metadata": 6, "sep-2322-client-request-state": 5,
		"http-standard-headers": 3, "http-custom-headers": 18, "http-invalid-tool-headers": 12, "json-schema-ref-no-deref": 1, "json-schema-2020-12-preservation": 6,
	},
}

func TestTheClientPassesTheConformanceSuite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for version, scenarios := range noLogin {
		t.Run(version, func(t *testing.T) {
			if len(scenarios) > 4 && os.Getenv("PAWL_LONG") == "" {
				t.Skip("takes half a minute; PAWL_LONG=1 runs it")
			}
			dir := mcptest.Packages(t, "@modelcontextprotocol/conformance@"+version)
			for scenario, most := range scenarios {
				t.Run(scenario, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					run := exec.CommandContext(ctx, mcptest.Node(dir), filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
						"client", "--command", self, "--scenario", scenario)
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
		})
	}
}
