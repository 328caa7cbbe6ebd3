package resolve

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlrun/pawl/event"
)

// senders are the programs that communicate with other machines.
var senders = []string{"curl", "wget", "nc", "ncat", "netcat", "scp", "sftp", "rsync", "ftp", "tftp", "telnet", "socat", "http", "https", "mail", "sendmail",
	"dig", "host", "nslookup", "drill", "ping", "ping6", "traceroute", "tracepath", "mtr", "whois", "gh", "glab"}

// Sends reports whether a command line is known to communicate with another machine, or
// may do so through a program that it runs. An unclear command line may do so.
func Sends(f event.Facts) bool {
	return f.Risk == event.RiskSend || slices.ContainsFunc(f.Commands, func(c event.Command) bool {
		for i, name := range c.Words {
			if i > 0 && !slices.Contains(unclearPrograms, path.Base(c.Words[0])) {
				break
			}
			name = path.Base(name)
			if name == "ssh" || slices.Contains(senders, name) || name == "git" && slices.Contains(remoteGit, gitSubcommand(c.Words[i+1:])) {
				return true
			}
		}
		return false
	})
}

// gitSubcommand returns the first word that is neither an option nor an option's value.
func gitSubcommand(words []string) string {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") && (i == 0 || !slices.Contains([]string{"-c", "-C", "--git-dir", "--work-tree", "--namespace"}, words[i-1])) {
			return w
		}
	}
	return ""
}

// remoteGit are the subcommands of git that communicate with another machine.
var remoteGit = []string{"push", "fetch", "pull", "clone", "ls-remote"}

// hosts records the machines that a command names. A program that connects to machines
// known only at run time is unclear.
func (r *reader) hosts(words []word) {
	name := program(words[0].text)
	sends := slices.Contains(senders, name) || name == "git" && len(words) > 1 && slices.Contains(remoteGit, words[1].text)
	for i, w := range words[1:] {
		switch host := hostOf(w.text); {
		case sends && (w.computed || host == ""):
			r.addressed(w)
			if flags := addressFlags[name]; flags != nil && !w.computed && w.text != "" && w.text[0] != '-' &&
				(i == 0 || !strings.HasPrefix(words[i].text, "-") || flags.MatchString(words[i].text)) {
				name, _, _ := strings.Cut(w.text, "/")
				name, _, _ = strings.Cut(name, ":")
				r.host(name)
			}
		case w.computed && strings.Contains(w.text, "://"):
			r.computedHost(w)
		case !w.computed:
			r.host(host)
		}
	}
}

// addressed records the machine in a word that is an address, or has one after the name
// of an option. An address need not contain a scheme.
func (r *reader) addressed(w word) {
	if w.computed {
		r.computedHost(w)
		return
	}
	for _, text := range []string{w.text, behindOption(w.text)} {
		if host := hostOf(text); host != "" {
			r.host(host)
		} else if m := bareHost.FindStringSubmatch(text); m != nil {
			r.host(m[1])
		}
	}
}

// behindOption returns the value in the same word as its option.
func behindOption(text string) string {
	if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "--") {
		return value
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		return text[2:]
	}
	return ""
}

func (r *reader) computedHost(w word) {
	r.unclear("which machine " + trim(w.text) + " names, is computed when it runs")
}

// addressFlags maps programs that interpret every operand as an address, even a plain
// name, to their options without a value.
var addressFlags = map[string]pattern{
	"curl": newPattern(`^-[#0-46aBfgGiIjJkLlnNOpqRsSvZ]+$`),
	"wget": newPattern(`^-[46bcdEFHkKLmNpqrSvx]+$`),
}

var (
	remote   = newPattern(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):[^/\\].*$`)
	userHost = newPattern(`^[A-Za-z0-9._-]+@([A-Za-z0-9][A-Za-z0-9.-]*)(?::.*)?$`)
	bareHost = newPattern(`^((?:[A-Za-z0-9_-]+\.)+[A-Za-z]{2,}\.?|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|localhost)(?:[:/?#].*)?$`)
)

// unreadable replaces a host that programs may interpret differently.
const unreadable = "?"

// downloads records the files that a sender writes, and the options with which it
// connects to another machine than its address or reads the address from a file.
func (r *reader) downloads(name string, args []word, dirs []string) {
	for i, a := range args {
		if where := elsewhere[name]; where != nil && where.MatchString(a.text) {
			r.unclear("which machine " + name + " " + trim(a.text) + " leads to, is not known")
		}
		m := outputs.FindStringSubmatch(a.text)
		switch {
		case m == nil || m[1] == "-":
		case m[1] != "":
			r.writes(word{text: m[1], computed: a.computed}, dirs)
		case i+1 < len(args) && args[i+1].text != "-":
			r.writes(args[i+1], dirs)
		}
	}
}

// outputs matches the options of senders that name an output file, with the file if it
// is in the same word.
var outputs = newPattern(`^(?:-[a-bd-np-zA-NP-Z0-9]*[oOD]|--(?:output|output-document|output-file|append-output|dump-header|cookie-jar|save-cookies` +
	`|trace|trace-ascii|stderr|etag-save|hsts|alt-svc|libcurl|rejected-log|warc-file)(?:=|$))(.*)$`)

var elsewhere = map[string]pattern{
	"curl": newPattern(`^(-[a-zA-Z#]*K.*|--config.*|--resolve|--connect-to|--unix-socket|--abstract-unix-socket|--doh-url|--url-query|--variable|--expand-.*)(=.*)?$`),
	"wget": newPattern(`^(-[a-zA-Z]*i.*|--input-file.*|-e.*|--execute.*|--config.*|--use-askpass.*)$`),
}

// hostOf returns the machine in a word, as an address or in the notation of scp and
// git.
func hostOf(text string) string {
	if i := strings.Index(text, "://"); i >= 0 {
		start := strings.LastIndexAny(text[:i], "=,:@ ") + 1
		if u, err := url.Parse(text[start:]); err == nil {
			return u.Hostname()
		}
		return unreadable
	}
	if m := userHost.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := remote.FindStringSubmatch(text); m != nil && strings.Contains(m[1], ".") {
		return m[1]
	}
	return ""
}

// maxHost is the maximum length of a machine's name (RFC 1035, 3.1).
const maxHost = 253

func (r *reader) host(name string) {
	if name == unreadable || strings.ContainsFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) {
		r.unclear("which machine " + trim(name) + " names, cannot be read")
		return
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || slices.Contains(r.facts.Hosts, name) {
		return
	}
	if len(r.facts.Hosts) == maxFacts {
		r.unclear("it names too many machines")
		return
	}
	if len(name) > maxHost {
		r.unclear("which machine " + trim(name) + " names, cannot be read")
		return
	}
	r.facts.Hosts = append(r.facts.Hosts, name)
}

// sockets are the directories under which bash opens a connection for a redirection: to
// a host and a port, over TCP or UDP.
var sockets = []string{"/dev/tcp/", "/dev/udp/"}

// connects records the machine that a redirection connects to, for reading or writing.
// A computed target may be such a machine.
func (r *reader) connects(to word) {
	for _, socket := range sockets {
		host, ok := strings.CutPrefix(to.text, socket)
		host, _, _ = strings.Cut(host, "/")
		switch {
		case ok && to.computed:
			r.computedHost(to)
			r.atLeast(event.RiskSend)
		case ok:
			r.host(host)
			r.atLeast(event.RiskSend)
		case to.computed && !to.glob:
			r.notOnlyLooks = r.notOnlyLooks || strings.HasPrefix(socket, to.prefix)
		}
	}
}
