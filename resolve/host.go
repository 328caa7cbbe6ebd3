package resolve

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// senders are the programs that talk to other machines.
var senders = []string{"curl", "wget", "nc", "ncat", "netcat", "scp", "sftp", "rsync", "ftp", "tftp", "telnet", "socat", "http", "https", "mail", "sendmail"}

// Sends says that a command line is known to talk to another machine. A line
// of which it is not known does so perhaps.
func Sends(f event.Facts) bool {
	return f.Risk == event.RiskSend || slices.ContainsFunc(f.Commands, func(c event.Command) bool { return sends(c.Words) })
}

func sends(words []string) bool {
	if len(words) == 0 {
		return false
	}
	name := path.Base(words[0])
	return slices.Contains(senders, name) || name == "ssh" || name == "git" && len(words) > 1 && slices.Contains(remoteGit, words[1])
}

// remoteGit are the subcommands of git that talk to another machine.
var remoteGit = []string{"push", "fetch", "pull", "clone", "ls-remote"}

// hosts notes the machines that a command names. A program that talks to other
// machines and is told to which only when it runs is unclear.
func (r *reader) hosts(words []word) {
	name := program(words[0].text)
	sends := slices.Contains(senders, name) || name == "git" && len(words) > 1 && slices.Contains(remoteGit, words[1].text)
	for _, w := range words[1:] {
		if w.computed {
			if sends || strings.Contains(w.text, "://") {
				r.unclear("which machine " + trim(w.text) + " names, is computed when it runs")
			}
			continue
		}
		if host := hostOf(w.text); host != "" {
			r.host(host)
		} else if sends && hostName.MatchString(w.text) {
			r.host(w.text)
		}
	}
}

var (
	remote   = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):[^/\\].*$`)
	userHost = regexp.MustCompile(`^[A-Za-z0-9._-]+@([A-Za-z0-9][A-Za-z0-9.-]*)(?::.*)?$`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}$|^[0-9]{1,3}(\.[0-9]{1,3}){3}$|^localhost$`)
)

// hostOf is the machine that a word names, as an address or as scp and git
// write it.
func hostOf(text string) string {
	if i := strings.Index(text, "://"); i >= 0 {
		start := strings.LastIndexAny(text[:i], "=,:@ ") + 1
		if u, err := url.Parse(text[start:]); err == nil {
			return u.Hostname()
		}
		return "?"
	}
	if m := userHost.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := remote.FindStringSubmatch(text); m != nil && strings.Contains(m[1], ".") {
		return m[1]
	}
	return ""
}

func (r *reader) host(name string) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || slices.Contains(r.facts.Hosts, name) {
		return
	}
	if len(r.facts.Hosts) == maxFacts {
		r.unclear("it names too many machines")
		return
	}
	r.facts.Hosts = append(r.facts.Hosts, trim(name))
}
