package mcptest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/login"
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

// settings are what the suite says of a scenario.
type settings struct {
	ToolCalls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// client is a run that calls each tool of a server, and where the server wants a login
// a second run, in which a login that was refused is tried again.
func client(scenario, url string) error {
	var given settings
	if text := os.Getenv(contextVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	ctx := context.Background()
	o := mcp.Options{Server: scenario, URL: url}
	if !strings.HasPrefix(scenario, "auth/") {
		return new(person).use(ctx, o, given)
	}
	if strings.HasPrefix(scenario, "auth/client-credentials-") {
		return errors.New("a login without a person is not offered")
	}
	dir, err := os.MkdirTemp("", "login-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &person{login: &login.Login{Dir: dir, Server: login.Server{URL: url, ClientID: cmp.Or(given.ClientID, clientDocument), ClientSecret: given.ClientSecret}}}
	o.Login = &mcp.Login{Token: p.token, Command: "log in"}
	return errors.Join(p.use(ctx, o, given), p.use(ctx, o, given))
}

// use calls each tool of a server.
func (p *person) use(ctx context.Context, o mcp.Options, given settings) error {
	s, err := mcp.Connect(ctx, o)
	for errors.Is(err, mcp.ErrLoginNeeded) {
		if err := p.logIn(ctx, err.Error()); err != nil {
			return err
		}
		s, err = mcp.Connect(ctx, o)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	tools := s.Tools()
	for i, t := range tools {
		args := json.RawMessage(`{}`)
		switch o.Server {
		case "tools_call":
			args = json.RawMessage(`{"a":2,"b":3}`)
		case "json-schema-2020-12-preservation":
			// One tool is called with the schema of the other one.
			args = json.RawMessage(`{"schema":` + string(tools[(i+1)%len(tools)].Schema) + `}`)
		}
		for _, c := range given.ToolCalls {
			if t.Name == o.Server+"."+c.Name {
				args = c.Arguments
			}
		}
		if err := p.attempts(ctx, t, args); err != nil {
			return err
		}
	}
	return nil
}

// clientDocument is the address at which the suite expects the metadata of a client.
const clientDocument = "https://conformance-test.local/client-metadata.json"

// maxLogins is how often a person logs in at one server.
const maxLogins = 3

// person logs in where a run needs it, and sends each form as it is.
type person struct {
	login *login.Login
	count int
}

func (p *person) token(ctx context.Context, refused string) (string, error) {
	token, err := p.login.Token(ctx, refused)
	if errors.Is(err, login.ErrNeeded) {
		return "", fmt.Errorf("%w: %w", mcp.ErrLoginNeeded, err)
	}
	return token, err
}

// logIn runs the command that a run prints.
func (p *person) logIn(ctx context.Context, command string) error {
	if p.count++; p.count > maxLogins {
		return errors.New("one login is needed after another")
	}
	p.login.Further = nil
	for _, flag := range strings.Split(command, " --scope ")[1:] {
		scope, _, _ := strings.Cut(flag, " ")
		p.login.Further = append(p.login.Further, scope)
	}
	return p.login.Begin(ctx, mcptest.Browse)
}

// attempts makes a call until it has a result, with what the person answers in between.
func (p *person) attempts(ctx context.Context, t tool.Tool, args json.RawMessage) error {
	c := tool.Call{ID: "c-" + t.Name, Key: "k-" + t.Name, Args: args, Run: agreeable{}}
	for c.Attempt = 1; ; c.Attempt++ {
		_, err := t.Run(ctx, c)
		needs, asks := errors.AsType[*tool.InputRequired](err)
		if !asks || c.Attempt > 10 {
			return err
		}
		if needs.Form.Command != "" {
			if err := p.logIn(ctx, needs.Form.Command); err != nil {
				return err
			}
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
func (agreeable) Print([]byte)                    {}

func (agreeable) Allowed(string) (bool, bool) { return true, true }

func (agreeable) Sample(context.Context, tool.Sampling) (tool.Sampled, error) {
	return tool.Sampled{Text: "an answer"}, nil
}

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

// summary is the line of a scenario in the output of a suite.
var summary = regexp.MustCompile(`(?m)^\S+ (\S+): (\d+) passed, (\d+) failed(?:, (\d+) warnings)?$`)

// late is what the suite reports of a client on a machine with much else to do.
var late = regexp.MustCompile(`reconnected (very|slightly) late`)

// notOffered maps each scenario in which a check fails, or that has none, to the reason.
var notOffered = map[string]string{
	"auth/client-credentials-jwt":           "logins without a person: a login needs one",
	"auth/client-credentials-basic":         "logins without a person: a login needs one",
	"auth/cross-app-access-complete-flow":   "logins with the token of an enterprise's identity provider",
	"auth/enterprise-managed-authorization": "logins with the token of an enterprise's identity provider",
	"auth/wif-jwt-bearer":                   "logins with the token of a workload (WIF)",
	"auth/dpop":                             "tokens that are bound to a key (DPoP)",
	"auth/dpop-nonce":                       "tokens that are bound to a key (DPoP)",
	"0.1.16 " + backwards:                   "metadata of another issuer, which RFC 8414 forbids; the later suite has the right one",
	"sep-2640-client-no-prefetch":           "skills of a server",
	"sep-2640-client-verify-digest":         "skills of a server",
	"sep-2640-client-verify-size":           "skills of a server",
	"sep-2640-client-verify-frontmatter":    "skills of a server",
}

const backwards = "auth/2025-03-26-oauth-metadata-backcompat"

func TestTheClientPassesTheConformanceSuite(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The scenarios of the suite "core" are among those of "all", and each of them passes.
	for version, want := range map[string]struct{ scenarios, passed, failed int }{"0.1.16": {26, 370, 7}, "0.2.0-alpha.12": {48, 625, 13}} {
		t.Run(version, func(t *testing.T) {
			dir, results := mcptest.Packages(t, "@modelcontextprotocol/conformance@"+version), t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, mcptest.Node(dir), filepath.Join(dir, "node_modules/@modelcontextprotocol/conformance/dist/index.js"),
				"client", "--command", self, "--suite", "all", "--timeout", "240000", "--output-dir", results)
			run.Dir = t.TempDir()
			out, _ := run.CombinedOutput() // it fails where a scenario does, so the counts are read
			scenarios, passed, failed := 0, 0, 0
			for _, m := range summary.FindAllSubmatch(out, -1) {
				name, good, bad, warnings := string(m[1]), number(m[2]), number(m[3]), number(m[4])
				if name == "sse-retry" && late.MatchString(output(results, name)) {
					bad, warnings = 0, 0
				}
				scenarios, passed, failed = scenarios+1, passed+good, failed+bad
				is, reason := good > 0 && bad+warnings == 0, cmp.Or(notOffered[name], notOffered[version+" "+name])
				if is == (reason != "") {
					t.Errorf("%s; what is not offered: %q\n%s", m[0], reason, output(results, name))
				}
			}
			if scenarios != want.scenarios || passed < want.passed || failed > want.failed {
				t.Errorf("%d scenarios, %d checks pass and %d fail, want %+v: %s", scenarios, passed, failed, want, out)
			}
		})
	}
}

func number(text []byte) int {
	n, _ := strconv.Atoi(string(text))
	return n
}

// output is what the suite and the client said in a scenario.
func output(results, scenario string) string {
	var all strings.Builder
	for _, name := range []string{"stderr.txt", "checks.json"} {
		files, _ := filepath.Glob(filepath.Join(results, scenario+"-20*", name))
		for _, file := range files {
			text, _ := os.ReadFile(file)
			all.Write(text)
		}
	}
	return all.String()
}
