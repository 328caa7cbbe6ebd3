package secret

import (
	"regexp"
	"slices"
	"strings"
)

// keyLines returns the lines of the private keys in a value, which only the holder
// of the key could have written. A variable or the file of a service account may
// contain JSON escapes for line ends.
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

// constant reports whether a line is the first one of OpenSSH's keys, which is the
// same for all of a kind. Where a program wrote the whole key in one line, it is
// longer.
func constant(line string) bool {
	return strings.HasPrefix(line, "b3BlbnNzaC1rZXktdjEA") && len(line) <= 70
}

// partsOf are the credentials in a value of several lines, such as .npmrc, .netrc or
// the file of a service account: what a name says of them, and what an address has
// for a password. The rest of such a file, names of hosts and of projects among it,
// others say as well, and a call that has to say it could not be made. In armour it
// is keyLines that tells them.
func partsOf(value string) []string {
	if !lineBreaks.MatchString(value) {
		return nil
	}
	var parts []string
	if alone := strings.TrimSpace(value); !lineBreaks.MatchString(alone) {
		parts = append(parts, alone) // as a file has it
	}
	for _, line := range lineBreaks.Split(armour.ReplaceAllString(value, "\n"), -1) {
		parts = append(parts, assignedIn(line)...)
		for _, field := range strings.Fields(line) {
			if strings.Contains(field, "://") {
				parts = append(parts, passwords(field)...)
			}
		}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < likelyLength })
}

// assignedIn are the values in a line that come after the name of a credential.
// What is taken is not looked at for names again, so that a line costs no more than
// its length.
func assignedIn(line string) []string {
	var values []string
	for {
		at := names.FindStringIndex(line)
		if at == nil {
			return values
		}
		name, rest := line[at[0]:at[1]], line[at[1]:]
		line = rest
		if !namesCredential(name) {
			continue
		}
		said := assigned.FindStringSubmatchIndex(rest)
		if said == nil || said[2] == said[3] && !strings.EqualFold(name, "password") {
			continue
		}
		if v := rest[said[4]:said[5]]; !isLocation(v) {
			values = append(values, v)
		}
		line = rest[said[5]:]
	}
}

// namesCredential is [LikelyName] by whole words: a file may tell its author and
// its keywords.
func namesCredential(name string) bool {
	return slices.ContainsFunc(wordsOf.FindAllString(name, -1), func(word string) bool {
		return slices.Contains(credentialWords, strings.ToLower(word))
	})
}

var (
	names = regexp.MustCompile(`[A-Za-z0-9_.-]+`)
	// assigned is a sign, which .netrc does without, and a value.
	assigned = regexp.MustCompile("^[\"']?\\s*([:=>]?)\\s*[\"']?([^\\s\"'`,;<>&\\\\]+)")
	wordsOf  = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

	credentialWords = []string{
		"key", "keys", "apikey", "token", "tokens", "authtoken", "secret", "secrets", "pass", "password", "passwd", "passphrase", "pwd",
		"credential", "credentials", "creds", "auth", "authorization", "cookie", "session",
	}
)
