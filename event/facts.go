package event

import (
	"slices"
	"strconv"
	"strings"
)

// Facts are what the driver established about a call before policy judged it, so that a
// decision can be understood, and repeated, from the journal alone.
type Facts struct {
	// Paths are the files and directories that the call names.
	Paths []PathUse `json:"paths,omitempty"`
	// Hosts are the machines that the call names, in lower case.
	Hosts []string `json:"hosts,omitempty"`
	// Ports are the ports of Hosts, in the same order; absent if the call names none.
	Ports []uint16 `json:"ports,omitempty"`
	// Commands are the simple commands of a command line.
	Commands []Command `json:"commands,omitempty"`
	Risk     Risk      `json:"risk,omitempty"`
	// Runs are the files of the workspace that the call runs by name, with digests: an
	// approval is valid only for that content.
	Runs []RunFile `json:"runs,omitempty"`
	// Redefined reports that the tool's definition has changed since the run began. An
	// approval is valid for that definition, and for all later calls with it.
	Redefined *Redefinition `json:"redefined,omitempty"`
	// Unclear lists what could not be established: the call may touch more than the
	// facts contain.
	Unclear []string `json:"unclear,omitempty"`
	// Confined reports that the tool opens nothing outside the workspace, even with an
	// approval.
	Confined bool `json:"confined,omitempty"`
	// Unsandboxed reports that the programs which the call starts have the user's
	// rights, unless a rule requires the sandbox for the call.
	Unsandboxed bool `json:"unsandboxed,omitempty"`
	// Sandboxed reports that they run in a sandbox, which enforces the protected paths,
	// the bound on files and the network whatever the programs do.
	Sandboxed bool `json:"sandboxed,omitempty"`
	// Remote reports that the call runs on another machine, and so touches no file of
	// this one.
	Remote bool `json:"remote,omitempty"`
}

// Redefinition describes how the definition of a tool changed during a run.
type Redefinition struct {
	// Digest is the digest of the current definition, Change the difference in words.
	Digest string `json:"digest"`
	Change string `json:"change"`
}

// Bound returns what an approval of a call of the tool is bound to, in addition to its
// arguments: the files that the call runs, and a changed definition of the tool.
func (f *Facts) Bound(tool string) []RunFile {
	switch {
	case f == nil:
		return nil
	case f.Redefined == nil:
		return f.Runs
	}
	return append(slices.Clip(f.Runs), RunFile{Path: tool, Digest: f.Redefined.Digest})
}

// RunFile is a file that a call runs, such as a script.
type RunFile struct {
	// Path is the file's canonical name, relative to the workspace.
	Path string `json:"path"`
	// Digest is the SHA-256 of the content in hexadecimal digits; it is empty for a file
	// that cannot be read or is too long.
	Digest string `json:"digest,omitempty"`
}

// Port returns the port of a host by its index in Hosts, 0 if unknown.
func (f *Facts) Port(host int) uint16 {
	if host < len(f.Ports) {
		return f.Ports[host]
	}
	return 0
}

// HostPort returns a host by its index in Hosts for people, with the port if it is
// known.
func (f *Facts) HostPort(host int) string {
	name, port := f.Hosts[host], f.Port(host)
	switch {
	case port == 0:
		return name
	case strings.Contains(name, ":"):
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(int(port))
}

// PathUse is one file or directory that a call touches.
type PathUse struct {
	// Path is the file's canonical name, with every symbolic link and ".." resolved:
	// relative to the workspace and separated by "/" if it is inside ("." is the
	// workspace), absolute elsewhere.
	Path    string `json:"path"`
	Outside bool   `json:"outside,omitempty"`
	Write   bool   `json:"write,omitempty"`
	// Tree reports that everything below the path is touched as well.
	Tree bool `json:"tree,omitempty"`
	// Unknown reports that the path is computed when the call runs; Path is its source
	// text.
	Unknown bool `json:"unknown,omitempty"`
	// Given reports that the path is an argument of a program whose use of it is
	// unknown.
	Given bool `json:"given,omitempty"`
	// Found reports that the path matches a wildcard, and is canonical: no link leads
	// to it.
	Found bool `json:"found,omitempty"`
	// Alias reports that the path is not canonical, but a name in the workspace through
	// which symbolic links lead to the file; the canonical name is another element.
	// Rules that forbid a path forbid it under every name.
	Alias bool `json:"alias,omitempty"`
	// Pattern reports that the path is a shell pattern that matches too many files to
	// list. "*" and "?" are its only wildcards.
	Pattern bool `json:"pattern,omitempty"`
	// Scratch reports that the path is in a directory that the sandbox replaces by a
	// private one for temporary files, so that nothing outside is touched.
	Scratch bool `json:"scratch,omitempty"`
	// Repository reports that the path is a Git directory in which a git command
	// writes: everything in it except what decides which programs git runs (config,
	// hooks), which is listed separately if it is written.
	Repository bool `json:"repository,omitempty"`
	// Protected reports that the sandbox keeps the path read-only, and would open it
	// for the call.
	Protected bool `json:"protected,omitempty"`
}

// Base returns the directory that contains the path or is the path; all matches of a
// pattern are below it.
func (p PathUse) Base() string {
	if !p.Pattern {
		return p.Path
	}
	before, _, _ := strings.Cut(p.Path, "*")
	before, _, _ = strings.Cut(before, "?")
	if at := strings.LastIndexByte(before, '/'); at > 0 {
		return before[:at]
	} else if at == 0 {
		return "/"
	}
	return "."
}

// A word of a [Command] of more than MaxWord bytes is truncated and ends in WordCut.
const (
	MaxWord = 200
	WordCut = "…"
)

// Command is one simple command of a command line.
type Command struct {
	// Words are the program and its arguments as the program will see them; a word that
	// is computed at run time is its source text. Long ones are truncated ([MaxWord]).
	Words []string `json:"words"`
	// Program is the canonical name of the file of a program that is called by a path,
	// relative to the workspace if it is inside.
	Program string `json:"program,omitempty"`
	// Computed reports that some word is computed at run time.
	Computed bool `json:"computed,omitempty"`
	// ReadOnly reports that the command is known to change nothing.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Risk is the kind of harm that a call can do.
type Risk string

// The risk classes, the least harmful first.
const (
	// RiskRead: nothing changes.
	RiskRead Risk = "read_only"
	// RiskWrite: files are created or changed.
	RiskWrite Risk = "write"
	// RiskExecute: a program with unknown effects runs.
	RiskExecute Risk = "execute"
	// RiskDelete: data is deleted or overwritten permanently.
	RiskDelete Risk = "delete"
	// RiskSend: data is sent to another machine or person.
	RiskSend Risk = "send"
	// RiskPermission: access rights change.
	RiskPermission Risk = "permission_change"
	// RiskFinancial: money moves.
	RiskFinancial Risk = "financial"
	// RiskUnknown: the risk could not be established.
	RiskUnknown Risk = "unknown"
)
