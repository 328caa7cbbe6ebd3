package event

import (
	"slices"
	"strconv"
	"strings"
)

// Facts are what the driver established about a call before policy judged it,
// so that a decision can be understood, and made again, from the journal
// alone.
type Facts struct {
	// Paths are the files and directories that the call names.
	Paths []PathUse `json:"paths,omitempty"`
	// Hosts are the machines that the call names, in lower case.
	Hosts []string `json:"hosts,omitempty"`
	// Ports are those of Hosts, in their order; none where the call does not
	// say.
	Ports []uint16 `json:"ports,omitempty"`
	// Commands are the simple commands that a command line is made of.
	Commands []Command `json:"commands,omitempty"`
	Risk     Risk      `json:"risk,omitempty"`
	// Runs are the files of the workspace that the call runs by name, with their
	// content: an approval is good for that content alone.
	Runs []RunFile `json:"runs,omitempty"`
	// Redefined says that the tool is defined otherwise than when the run began: an
	// approval is good for that definition alone, and for all later calls by it.
	Redefined *Redefinition `json:"redefined,omitempty"`
	// Unclear says what could not be established: the call may touch more
	// than the facts say.
	Unclear []string `json:"unclear,omitempty"`
	// Confined says that the tool opens nothing outside the workspace, even with an
	// approval.
	Confined bool `json:"confined,omitempty"`
	// Unsandboxed says that the programs which the call starts have the user's
	// rights, unless a rule requires the sandbox for the call.
	Unsandboxed bool `json:"unsandboxed,omitempty"`
	// Sandboxed says that they run in a sandbox, which holds the protected paths, the
	// bound on files and the network whatever the programs do.
	Sandboxed bool `json:"sandboxed,omitempty"`
}

// Redefinition is how the definition of a tool changed while a run went on.
type Redefinition struct {
	// Digest is that of the definition now, Change what is different, in words.
	Digest string `json:"digest"`
	Change string `json:"change"`
}

// Bound is what an approval of a call of the tool is bound to beside its arguments: the
// files that the call runs, and the definition of a tool that changed.
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
	// Path is the file's own name, relative to the workspace.
	Path string `json:"path"`
	// Digest is the SHA-256 of the content in hexadecimal digits; it is empty for a file
	// that cannot be read or is too long.
	Digest string `json:"digest,omitempty"`
}

// Port is that of a host by its place in Hosts, 0 where it is not known.
func (f *Facts) Port(host int) uint16 {
	if host < len(f.Ports) {
		return f.Ports[host]
	}
	return 0
}

// HostPort is a host by its place in Hosts as people write it, with the port
// where it is known.
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
	// Path is the file's own name, behind every symbolic link and "..":
	// relative to the workspace and separated by "/" where it lies inside
	// ("." is the workspace), absolute elsewhere.
	Path    string `json:"path"`
	Outside bool   `json:"outside,omitempty"`
	Write   bool   `json:"write,omitempty"`
	// Tree says that everything below the path is touched as well.
	Tree bool `json:"tree,omitempty"`
	// Unknown says that the path is computed when the call runs; Path is how
	// the call writes it.
	Unknown bool `json:"unknown,omitempty"`
	// Given says that the path is an argument of a program of which it is not known
	// what it does with it.
	Given bool `json:"given,omitempty"`
	// Found says that the path is one of those that a pattern of names stands for,
	// and its own name: no link leads to it.
	Found bool `json:"found,omitempty"`
	// Alias says that the path is no own name, but one of the workspace by which
	// symbolic links lead to the file, which stands beside it under its own. What
	// rules forbid they forbid under every name.
	Alias bool `json:"alias,omitempty"`
	// Pattern says that the path is a pattern of names, as a shell reads it, which
	// stands for too many files to list them. "*" and "?" are its only wildcards.
	Pattern bool `json:"pattern,omitempty"`
	// Scratch says that the sandbox has an own directory for temporary files in the place
	// of the one that the path lies in, so that nothing outside is touched.
	Scratch bool `json:"scratch,omitempty"`
	// Repository says that the path is a directory of git's in which a command of git
	// writes: everything in it but what decides which programs git runs (config, hooks),
	// which is named besides where it is written.
	Repository bool `json:"repository,omitempty"`
	// Protected says that the sandbox holds the path read-only, and would open it
	// for the call.
	Protected bool `json:"protected,omitempty"`
}

// Base is the directory that the path lies in or is; all that a pattern matches lies
// below it.
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

// A word of a [Command] of more than MaxWord bytes is kept in its beginning, with
// WordCut behind it.
const (
	MaxWord = 200
	WordCut = "…"
)

// Command is one simple command of a command line.
type Command struct {
	// Words are the program and its arguments as the program will see them; a
	// word that is computed when the command runs is its source text. Long ones
	// are cut ([MaxWord]).
	Words []string `json:"words"`
	// Program is the own name of the file that a program which is called by a path
	// leads to, relative to the workspace where it lies inside.
	Program string `json:"program,omitempty"`
	// Computed says that some word is computed when the command runs.
	Computed bool `json:"computed,omitempty"`
	// ReadOnly says that the command is known to change nothing.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Risk is what kind of harm a call can do.
type Risk string

// The risk classes, the least harmful one first.
const (
	// RiskRead: nothing is changed.
	RiskRead Risk = "read_only"
	// RiskWrite: files are made or changed.
	RiskWrite Risk = "write"
	// RiskExecute: a program runs, and what it does is not known.
	RiskExecute Risk = "execute"
	// RiskDelete: something is deleted or overwritten for good.
	RiskDelete Risk = "delete"
	// RiskSend: something leaves for another machine or person.
	RiskSend Risk = "send"
	// RiskPermission: someone's rights change.
	RiskPermission Risk = "permission_change"
	// RiskFinancial: money moves.
	RiskFinancial Risk = "financial"
	// RiskUnknown: it could not be established.
	RiskUnknown Risk = "unknown"
)
