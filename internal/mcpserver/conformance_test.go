package mcpserver_test

import (
	"bytes"
	"context"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/mcptest"
)

// suite is a version of the protocol's conformance suite with the expected outcome.
type suite struct {
	version string
	args    []string
	// passed is the minimum number of checks that pass in the scenarios of ours, in which
	// every check does.
	passed int
	ours   []string
}

// notOffered maps each scenario that fails to the feature that it needs and Pawl does
// not offer. The suite expects tools, resources and prompts of a particular server.
var notOffered = map[string]string{
	"completion-complete":           "completions: no argument of a tool has a list of values",
	"tools-call-image":              "an image of fixed content: a run answers with text",
	"tools-call-audio":              "a sound of fixed content: a run answers with text",
	"tools-call-embedded-resource":  "a resource of fixed content in a result: a run answers with text",
	"tools-call-mixed-content":      "parts of fixed content: a run answers with text",
	"tools-call-with-logging":       "log messages: the events of a run are its progress and its resource",
	"tools-call-sampling":           "sampling: a run calls the models of its file",
	"elicitation-sep1034-defaults":  "a form with defaults of the suite: Pawl asks for decisions",
	"elicitation-sep1330-enums":     "a form with enums of the suite: Pawl asks for decisions",
	"resources-read-text":           "test://static-text: Pawl's resources are its runs",
	"resources-read-binary":         "test://static-binary: Pawl's resources are its runs",
	"resources-templates-read":      "test://template: Pawl's resources are its runs",
	"resources-subscribe":           "subscriptions: a client follows a run by its progress",
	"resources-unsubscribe":         "subscriptions: a client follows a run by its progress",
	"prompts-get-simple":            "prompts",
	"prompts-get-with-args":         "prompts",
	"prompts-get-embedded-resource": "prompts",
	"prompts-get-with-image":        "prompts",

	"json-schema-2020-12":                           "a tool with the schema of the suite: the arguments of a run are texts",
	"http-custom-header-server-validation":          "arguments as headers: no tool has the annotation x-mcp-header",
	"server-stateless":                              "prompts, log messages, and the suite's tools without a capability and with a stream",
	"input-required-result-basic-elicitation":       "a form of the suite: Pawl asks for decisions",
	"input-required-result-capability-check":        "sampling: a run calls the models of its file",
	"input-required-result-basic-sampling":          "sampling: a run calls the models of its file",
	"input-required-result-basic-list-roots":        "roots: the workspace is the server's",
	"input-required-result-multiple-input-requests": "sampling and roots beside a form",
	"input-required-result-multi-round":             "a form of the suite in two parts: Pawl asks for decisions",
	"input-required-result-non-tool-request":        "prompts",
}

// conforming holds files whose tools have the names that the suite calls.
var conforming = map[string]string{
	"simple.yaml":   "identity: {name: test_simple_text, description: Says a text.}\nprompt: {task: Say it.}\ntools: {allow: []}\nmodel_policy: {primary: {model: scripted/simple.script}}\n",
	"simple.script": "- text: This is a simple text response for testing.\n",
	"fails.yaml": "identity: {name: test_error_handling, description: Fails.}\nprompt: {task: Fail.}\ntools: {allow: [fs.list]}\nmax_cycles: 1\n" +
		"model_policy: {primary: {model: scripted/lists.script}}\n",
	"lists.script": "- tool_calls: [{name: fs.list, arguments: {path: .}}]\n- text: the end\n",
	"progress.yaml": "identity: {name: test_tool_with_progress, description: Works.}\nprompt: {task: Work.}\ntools: {allow: [fs.list]}\n" +
		"model_policy: {primary: {model: scripted/lists.script}}\n",
	"asks.yaml": "identity: {name: test_elicitation, description: Asks.}\nprompt: {task: 'Do ${message}.'}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n" +
		"model_policy: {primary: {model: scripted/asks.script}}\n",
	"required.yaml": asking("test_input_required_result_elicitation"), "state.yaml": asking("test_input_required_result_request_state"),
	"tampered.yaml": asking("test_input_required_result_tampered_state"),
	"asks.script":   "- tool_calls: [{name: fs.write, arguments: {path: asked.txt, content: x}}]\n- text: the end\n",
}

// asking is a file whose run asks a person.
func asking(name string) string {
	return "identity: {name: " + name + ", description: Asks.}\nprompt: {task: Do it.}\ntools: {allow: [fs.write], approvals: {fs.write: always}}\n" +
		"model_policy: {primary: {model: scripted/asks.script}}\n"
}

func TestTheServerPassesTheConformanceSuiteOfWhatItOffers(t *testing.T) {
	for _, of := range []suite{
		{"0.1.16", nil, 14, []string{
			"server-initialize", "logging-set-level", "ping", "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress", "tools-call-elicitation",
			"server-sse-multiple-streams", "resources-list", "prompts-list", "dns-rebinding-protection",
		}},
		{"0.2.0-alpha.12", []string{"--spec-version", "2026-07-28", "--suite", "all"}, 58, []string{
			"tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress", "server-sse-multiple-streams", "resources-list", "prompts-list",
			"dns-rebinding-protection", "caching", "http-header-validation", "sep-2164-resource-not-found", "input-required-result-request-state",
			"input-required-result-result-type", "input-required-result-tampered-state", "input-required-result-missing-input-response",
			"input-required-result-unsupported-methods", "input-required-result-ignore-extra-params", "input-required-result-validate-input",
		}},
	} {
		t.Run(of.version, func(t *testing.T) {
			dir := mcptest.Packages(t, "@modelcontextprotocol/conformance@"+of.version)
			s := newest(t, conforming)
			args := append([]string{"node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", s.listen() + "/mcp"}, of.args...)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, mcptest.Node(dir), args...)
			run.Dir = dir
			out, _ := run.CombinedOutput() // it fails if a scenario does, so the test reads the counts
			of.check(t, out)
		})
	}
}

// outcome matches the line of a scenario in the summary.
var outcome = regexp.MustCompile(`(?m)^\S+ ([a-z0-9-]+): (\d+) passed, (\d+) failed`)

// check compares the output of a suite with the expected outcome.
func (of suite) check(t *testing.T, out []byte) {
	t.Helper()
	_, summary, _ := bytes.Cut(out, []byte("=== SUMMARY ==="))
	passed, failed := 0, map[string]bool{}
	seen := map[string]bool{}
	for _, m := range outcome.FindAllSubmatch(summary, -1) {
		name := string(m[1])
		good, err := strconv.Atoi(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
		if string(m[3]) != "0" {
			failed[name] = true
		} else if slices.Contains(of.ours, name) {
			passed += good
		}
		if good == 0 && string(m[3]) == "0" {
			t.Errorf("%s has no checks", name)
		}
	}
	if passed < of.passed {
		t.Errorf("%d checks pass in the scenarios of what is offered, want %d: %s", passed, of.passed, tail(out))
	}
	for _, name := range of.ours {
		if !seen[name] || failed[name] {
			t.Errorf("%s fails: %s", name, tail(out))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		if notOffered[name] == "" {
			t.Errorf("%s fails, and no reason is known", name)
		}
	}
	for name := range seen {
		if !failed[name] && notOffered[name] != "" {
			t.Errorf("%s passes: it is offered now", name)
		}
	}
}

func tail(out []byte) string {
	const most = 4000
	return string(out[max(0, len(out)-most):])
}
