package secret

import (
	"regexp"
	"slices"
	"strings"
)

// keyLines are the lines of the private keys in a value that nobody could have
// written but who has the key. A variable or the file of a service account may have
// the signs of JSON for the end of a line.
func keyLines(value string) []string {
	var lines []string
	for _, armoured := range armour.FindAllStringSubmatch(value, -1) {
		says := strings.ToUpper(armoured[1])
		if !strings.Contains(says, "KEY") || strings.Contains(says, "PUBLIC") {
			continue
		}
		for _, line := range lineBreaks.Split(armoured[2], -1) {
			line = strings.TrimSpace(line)
			if len(line) >= likelyLength && base64Line.MatchString(line) && !constant(line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

var (
	armour     = regexp.MustCompile(`(?s)-----BEGIN ([^\n-]*)-----(.*?)-----END `)
	lineBreaks = regexp.MustCompile(`(?:\\+[nr]|[\r\n])+`)
	base64Line = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$`)
)

// constant says that a line is the first one of OpenSSH's keys, which is the same
// for all of a kind. Where a program wrote the whole key in one line, it is longer.
func constant(line string) bool {
	return strings.HasPrefix(line, "b3BlbnNzaC1rZXktdjEA") && len(line) <= 70
}

// partsOf are the credentials in a value of several lines, such as .npmrc, .netrc or
// the file of a service account: what a name says of them, what an address has
// for a password, and what is too much of a jumble to be said by anybody else. The
// rest of such a file others say, too, and stays text. In armour it is keyLines that
// tells them.
func partsOf(value string) []string {
	if !lineBreaks.MatchString(value) {
		return nil
	}
	var parts []string
	for _, line := range lineBreaks.Split(armour.ReplaceAllString(value, "\n"), -1) {
		for _, at := range names.FindAllStringIndex(line, -1) {
			if said := assigned.FindStringSubmatch(line[at[1]:]); said != nil && LikelyName(line[at[0]:at[1]]) && !place(said[1]) {
				parts = append(parts, said[1])
			}
		}
		for _, field := range strings.Fields(line) {
			if strings.Contains(field, "://") {
				parts = append(parts, passwords(field)...)
			}
		}
		for _, at := range tokens.FindAllStringIndex(line, -1) {
			if token := strings.Trim(line[at[0]:at[1]], "/."); jumble(token) && !named.MatchString(line[at[1]:]) {
				parts = append(parts, token)
			}
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < likelyLength })
}

var (
	names    = regexp.MustCompile(`[A-Za-z0-9_.-]+`)
	assigned = regexp.MustCompile("^[\"']?(?:\\s*[:=>]\\s*|\\s+)[\"']?([^\\s\"'`,;<>&\\\\]+)")
	tokens   = regexp.MustCompile(`[A-Za-z0-9+/_.~%-]+`)
	// named goes on after the name of what comes next.
	named = regexp.MustCompile(`^["']?\s*(?::|=[^=])`)
	runs  = regexp.MustCompile(`[A-Za-z0-9]{12,}`)
)

// jumble says that a word has letters and digits in a run that is longer than
// words are.
func jumble(word string) bool {
	return slices.ContainsFunc(runs.FindAllString(word, -1), func(run string) bool {
		return strings.ContainsAny(run, "0123456789") && strings.Trim(run, "0123456789") != ""
	})
}
