package holder

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ServerVariable is the variable in the environment of a run's MCP servers, and of what
// they start, by which [Left] finds them. Its value is [MarkOf] the server.
const ServerVariable = "PAWL_MCP_SERVER"

// MarkOf returns the value of [ServerVariable] for a server that this process starts.
func MarkOf(server string) string { return server + "@" + Process() }

// LeftProcess is a process of an MCP server whose Pawl has ended.
type LeftProcess struct {
	PID    int
	Server string
	// Program is its first argument.
	Program string
}

// Left lists the processes of MCP servers that are left on this machine although the
// process that started them has ended. It sees only processes of this user, and omits
// one that replaced its environment. known is false on a system that shows no
// environments.
func Left() (left []LeftProcess, known bool) {
	// This process may have closed its own environment to others, and so to itself.
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		return nil, false
	}
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		dir := filepath.Dir(name)
		pid, err := strconv.Atoi(filepath.Base(dir))
		server, owner, marked := markIn(env)
		if err != nil || !marked || !Gone(owner) {
			continue
		}
		argv, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		program, _, _ := bytes.Cut(argv, []byte{0})
		left = append(left, LeftProcess{PID: pid, Server: server, Program: string(program)})
	}
	return left, true
}

func markIn(env []byte) (server, owner string, marked bool) {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := strings.CutPrefix(string(kv), ServerVariable+"="); ok {
			return strings.Cut(value, "@")
		}
	}
	return "", "", false
}
