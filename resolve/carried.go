package resolve

import (
	"slices"
	"strings"
)

// carriers are the options whose value is a command line that the program
// runs. A rule about a command would not see it otherwise.
var carriers = map[string][]string{
	"tar":     {"--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command", "--info-script", "--new-volume-script", "-F"},
	"rsync":   {"-e", "--rsh", "--rsync-path"},
	"git":     {"-O", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--exec", "--extcmd"},
	"rg":      {"--pre", "--hostname-bin"},
	"fd":      {"-x", "-X", "--exec", "--exec-batch"},
	"fdfind":  {"-x", "-X", "--exec", "--exec-batch"},
	"sort":    {"--compress-program"},
	"split":   {"--filter"},
	"man":     {"-P", "--pager"},
	"go":      {"-exec", "-toolexec", "-vettool"},
	"script":  {"-c", "--command"},
	"install": {"--strip-program"},
}

// carried reads the command lines among the options of a program.
func (r *reader) carried(name string, args []word, dirs []string, depth int) {
	for i, a := range args {
		for _, option := range carriers[name] {
			value, found := attached(a.text, option)
			switch {
			case named(a.text, option) && i+1 < len(args):
				r.nested(args[i+1], dirs, depth)
			case clustered(a.text, option):
				r.unclear("which command " + name + " runs by " + trim(a.text) + " is not known")
			case found && a.computed:
				r.unclear("which command " + name + " " + option + " runs, is computed when it runs")
			case found:
				r.nested(word{text: strings.TrimPrefix(value, "exec=")}, dirs, depth)
			}
		}
	}
}

// named reports whether a word is an option, also where a long one is cut short, as
// many programs take it.
func named(text, option string) bool {
	return text == option || len(text) > 3 && text != "--checkpoint" && strings.HasPrefix(text, "--") && strings.HasPrefix(option, text)
}

// clustered reports whether a short option stands behind others in the same word.
func clustered(text, option string) bool {
	return len(option) == 2 && len(text) > 2 && text[0] == '-' && text[1] != '-' && strings.IndexByte(text[2:], option[1]) >= 0
}

// attached is the value of an option that is written in the same word.
func attached(text, option string) (string, bool) {
	if name, value, ok := strings.Cut(text, "="); ok && named(name, option) {
		return value, true
	}
	rest, ok := strings.CutPrefix(text, option)
	switch {
	case !ok || rest == "":
		return "", false
	case strings.HasPrefix(rest, "="):
		return rest[1:], true
	}
	return rest, !strings.HasPrefix(option, "--") && len(option) == 2
}

// optionValues are the values that some options are given, each in the word
// behind its option or in the same one.
func optionValues(args []word, options ...string) []word {
	var values []word
	for i, a := range args {
		for _, option := range options {
			if named(a.text, option) && i+1 < len(args) {
				values = append(values, args[i+1])
			} else if value, ok := attached(a.text, option); ok {
				values = append(values, word{text: value, computed: a.computed})
			}
		}
	}
	return values
}

// nested reads a word as a command line of its own.
func (r *reader) nested(w word, dirs []string, depth int) {
	if w.computed {
		r.unclear("which command " + trim(w.text) + " is, is computed when it runs")
		return
	}
	outer := r.depth
	r.line(w.text, dirs, depth+1)
	r.depth = outer
}

// carryingVariables hold command lines that programs run.
var carryingVariables = []string{
	"PAGER", "MANPAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND",
	"GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "PROMPT_COMMAND", "BROWSER", "LESSOPEN", "LESSCLOSE", "RSYNC_RSH", "CVS_RSH", "TAR_OPTIONS",
}

// proxy is the end of the variables by which programs are told to talk to another
// machine than the one that they are asked for. Most are read in lower case.
const proxy = "_proxy"

// value reads what a variable is set to, where some program or shell would run
// it, or talk to the machine that it names.
func (r *reader) value(name string, w word, dirs []string) {
	if strings.HasSuffix(strings.ToLower(name), proxy) {
		r.addressed(w)
	}
	switch {
	case strings.HasPrefix(name, "GIT_CONFIG"):
		r.unclear("it sets " + name + ", which tells git what to run")
	case slices.Contains(carryingVariables, name):
		r.nested(w, dirs, r.depth)
	case !w.computed && hidesCommands(w.text):
		r.unclear("it sets " + name + " to what a shell may run")
	}
}
