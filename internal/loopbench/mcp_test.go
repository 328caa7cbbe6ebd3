package loopbench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/mcp"
	"github.com/pawlrun/pawl/tool/shell"
)

// mcpEnv makes this program a server of MCP.
const mcpEnv = "LOOPBENCH_MCP"

// BenchmarkMCPStart measures a run with three servers that take 1 s, 0.7 s and 0.4 s to
// start against the same run with the slowest alone.
func BenchmarkMCPStart(b *testing.B) {
	bin, server := binary(b), self(b)
	run := func(seconds ...float64) float64 {
		dir := b.TempDir()
		var servers, names []string
		for i, s := range seconds {
			names = append(names, fmt.Sprintf("s%d.echo", i))
			servers = append(servers, fmt.Sprintf("{server: s%d, command: [sh, -c, 'sleep %g; exec %s'], env: {%s: '1'}}", i, s, server, mcpEnv))
		}
		agent := fmt.Sprintf("identity: {name: starts}\nmodel_policy: {primary: {model: scripted/script.yaml}}\ntools:\n  allow: [%s]\n  mcp: [%s]\n",
			strings.Join(names, ", "), strings.Join(servers, ", "))
		for name, text := range map[string]string{"agent.yaml": agent, "script.yaml": "- text: done\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		c := exec.Command(bin, "run", "agent.yaml", "go")
		c.Dir, c.Env = dir, append(os.Environ(), "PAWL_SANDBOX=none")
		start := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		return float64(time.Since(start))
	}
	var ratios []float64
	for b.Loop() {
		slowest := run(1)
		ratios = append(ratios, run(1, 0.7, 0.4)/slowest)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
}

// BenchmarkMCPCall measures a call of a tool of a server over stdio above the same call by
// the SDK's client, each in turn.
func BenchmarkMCPCall(b *testing.B) {
	b.Setenv(mcpEnv, "1")
	s, err := mcp.Connect(b.Context(), mcp.Options{Server: "s", Command: []string{self(b)}, Shell: shell.Options{Dir: b.TempDir(), Env: os.Environ()}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	bare, err := sdk.NewClient(&sdk.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: exec.Command(self(b))}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	var echo tool.Tool
	for _, t := range s.Tools() {
		if t.Name == "s.echo" {
			echo = t
		}
	}
	args := json.RawMessage(`{"text":"x"}`)
	var ours, theirs []float64
	for b.Loop() {
		for i := range 200 {
			start := time.Now()
			if _, err := bare.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: args}); err != nil {
				b.Fatal(err)
			}
			between := time.Now()
			if _, err := echo.Run(b.Context(), tool.Call{ID: fmt.Sprint(i), Key: fmt.Sprint(i), Attempt: 1, Args: args}); err != nil {
				b.Fatal(err)
			}
			theirs, ours = append(theirs, float64(between.Sub(start))), append(ours, float64(time.Since(between)))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours)-median(theirs), "ns-above")
	b.ReportMetric(median(theirs), "bare-ns")
}

// ofMCP are the symbols that the binary has because of MCP.
var ofMCP = regexp.MustCompile(`modelcontextprotocol/go-sdk|golang\.org/x/oauth2|pawl/tool/mcp|pawl/internal/(mcpserver|host/login)|segmentio|yosida95`)

// BenchmarkMCPInTheBinary estimates how much of the stripped binary is there because of
// MCP: the share that its packages have of all functions.
func BenchmarkMCPInTheBinary(b *testing.B) {
	stripped, err := os.Stat(binary(b))
	if err != nil {
		b.Fatal(err)
	}
	whole := filepath.Join(b.TempDir(), "whole")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", whole, "github.com/pawlrun/pawl/cmd/pawl").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.Command("go", "tool", "nm", "-size", whole).Output()
	if err != nil {
		b.Fatal(err)
	}
	var all, part float64
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.EqualFold(words[2], "t") { // only functions name their package
			continue
		}
		size, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			continue
		}
		if all += size; ofMCP.MatchString(lines.Text()) {
			part += size
		}
	}
	for b.Loop() {
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(part/all*float64(stripped.Size())/(1<<20), "MiB")
}

func self(b *testing.B) string {
	b.Helper()
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return path
}
