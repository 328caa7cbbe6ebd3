package shell

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/internal/host/egress"
	"github.com/pawlrun/pawl/internal/host/sandbox"
)

var (
	// refusedFile matches how programs report that the system denies access to a file,
	// and unresolved a name without an address.
	refusedFile = regexp.MustCompile(`(?i)read-only file system|\bEROFS\b|permission denied|\bEACCES\b|device or resource busy|\bEBUSY\b`)
	unresolved  = regexp.MustCompile(`(?i)could not resolve|couldn't resolve|failed to resolve|unable to resolve|name resolution|name or service not known|no such host` +
		`|nodename nor servname|\bEAI_AGAIN\b|\bENOTFOUND\b|failed to lookup address|network is unreachable|\bENETUNREACH\b|unknown host`)
	// shellPrefix matches what a shell puts before a report about its line: its name, or
	// that of the script, and the number of the line.
	shellPrefix = regexp.MustCompile(`^\S+: (?:line )?\d+: `)
	// quotedText matches a name in quotes.
	quotedText = regexp.MustCompile("'([^']+)'|\"([^\"]+)\"|‘([^’]+)’|`([^`]+)`")
)

const (
	// maxSearched bounds how much of the end of an output is searched.
	maxSearched = 64 << 10
	// maxRefusals bounds how many refusals of one output are examined, from the last.
	maxRefusals = 20
)

// closedNote returns a line about what the sandbox, and not the machine, denied to a
// failed command; empty if the output shows no sign of that.
func (o Options) closedNote(end ended, output string, facts *event.Facts, boxed bool) string {
	if o.Sandbox == nil || !boxed || end.stopped || end.exitCode() == 0 && len(end.changed) == 0 {
		return ""
	}
	note := o.closedFile(end, output, o.grants(facts))
	if note == "" {
		note = o.closedHost(end, output, facts)
	}
	if note == "" {
		return ""
	}
	return "[closed by Pawl: " + note + "]"
}

func (o Options) closedFile(end ended, output string, grants []sandbox.Grant) string {
	if len(end.changed) > 0 {
		path := filepath.FromSlash(end.changed[0].Path)
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Sandbox.Policy().Workspace, path)
		}
		return o.why(path)
	}
	if len(output) > maxSearched {
		output = output[len(output)-maxSearched:]
	}
	lines, looked := strings.Split(output, "\n"), 0
	for _, line := range slices.Backward(lines) {
		line = shellPrefix.ReplaceAllString(line, "")
		refused := refusedFile.FindStringIndex(line)
		if refused == nil {
			continue
		}
		if looked++; looked > maxRefusals {
			break
		}
		for _, name := range namesIn(line, refused) {
			path := name
			if !filepath.IsAbs(path) {
				path = filepath.Join(o.Dir, path)
			}
			if o.isOurs(path, grants) {
				return o.why(path)
			}
		}
	}
	return ""
}

// namesIn returns the words of a line that may be file names: those in quotes, then
// those nearest before the refusal at refused, then those behind it. The first word is
// usually the program that reports the refusal, so it comes last.
func namesIn(line string, refused []int) []string {
	var names []string
	for _, m := range quotedText.FindAllStringSubmatch(line, -1) {
		names = append(names, strings.Join(m[1:], ""))
	}
	before := strings.Fields(line[:refused[0]])
	slices.Reverse(before)
	words := slices.Concat(before, strings.Fields(line[refused[1]:]))
	if n := len(before); n > 0 {
		words = append(slices.Delete(words, n-1, n), before[n-1])
	}
	for _, word := range words {
		if word = strings.Trim(word, `:;,'"()[]`); word != "" {
			names = append(names, word)
		}
	}
	return names
}

// isOurs reports whether the sandbox denies access to a path that this process can
// access. Files of kernel file systems are excluded, because their permissions prove
// nothing.
func (o Options) isOurs(path string, grants []sandbox.Grant) bool {
	if slices.Contains([]string{"proc", "sys", "dev"}, strings.SplitN(path, "/", 3)[1]) {
		return false
	}
	const read, write = 4, 2
	at := path
	for syscall.Access(at, 0) != nil && at != filepath.Dir(at) {
		at = filepath.Dir(at)
	}
	mayWrite := o.Sandbox.MayWrite(path, grants...) && o.Sandbox.Closed(path) != sandbox.ClosedBeside
	return !mayWrite && syscall.Access(at, write) == nil || at == path && !o.Sandbox.MayRead(path) && syscall.Access(at, read) == nil
}

// why returns the setting that closes a path, and the one that opens it.
func (o Options) why(path string) string {
	name := o.shownAs(path)
	switch o.Sandbox.Closed(path) {
	case sandbox.ClosedRepository:
		if o.Git == "deny" {
			return name + " is of a git repository (tools.permissions.git: deny); with ask, each command that writes it asks, and allow opens it to all"
		}
		return name + " is of a git repository, which is written with an approval (tools.permissions.git: ask); a command line that names the command of " +
			"git's asks for one, and tools.permissions.git: allow opens it to all commands"
	case sandbox.ClosedSettings:
		return name + " decides which programs git runs, so it is protected whatever tools.permissions.git says; a command line that names the file as what it writes asks"
	case sandbox.ClosedProtected:
		return name + " is a protected path (tools.protected_paths, and always .git and .pawl); a command line that names it as what it writes asks, and is let write it once approved"
	case sandbox.ClosedReadOnly:
		return name + ", because tools.permissions.filesystem is repo-readonly; with repo-readwrite commands write the workspace"
	case sandbox.ClosedHidden:
		return name + " is Pawl's own or a secret, and no setting opens it to commands"
	case sandbox.ClosedBeside:
		return name + " is in a directory with something hidden, where commands in the tier landlock create nothing; the tiers bubblewrap and namespaces open it " +
			"(tools.permissions.sandbox)"
	}
	if !o.Sandbox.MayRead(path) {
		return fmt.Sprintf("%s is hidden from commands (tools.permissions.filesystem: %s); filesystem: full shows it", name, o.Sandbox.Policy().Filesystem)
	}
	return fmt.Sprintf("%s is outside the workspace (tools.permissions.filesystem: %s); a command line that names it as what it writes asks, and filesystem: full opens all",
		name, o.Sandbox.Policy().Filesystem)
}

// shownAs returns a path as the workspace names it.
func (o Options) shownAs(path string) string {
	if rel, err := filepath.Rel(o.Dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return inText(path)
}

func (o Options) closedHost(end ended, output string, facts *event.Facts) string {
	for _, r := range end.reached {
		if r.Denied != "" {
			return fmt.Sprintf("%s, which tools.permissions.hosts does not name (network: allowlist); name it there", r.Host)
		}
	}
	if len(output) > maxSearched {
		output = output[len(output)-maxSearched:]
	}
	if !unresolved.MatchString(output) && !silent(end, facts) {
		return ""
	}
	switch o.Sandbox.Policy().Egress.Network {
	case egress.NetworkNone:
		return "the network (tools.permissions.network: none); network: allowlist opens the hosts that tools.permissions.hosts names, and network: host all"
	case egress.NetworkAllowlist:
		return "names are resolved by the proxy alone (tools.permissions.network: allowlist), which programs find by HTTPS_PROXY; a program that does not use it needs network: host"
	}
	return ""
}

// silent reports whether a command ended with the exit code by which curl -s and wget -q
// report a name that does not resolve.
func silent(end ended, facts *event.Facts) bool {
	codes := map[string]int{"curl": 6, "wget": 4}
	return facts != nil && slices.ContainsFunc(facts.Commands, func(c event.Command) bool {
		return len(c.Words) > 0 && codes[c.Words[0]] == end.exitCode()
	})
}
