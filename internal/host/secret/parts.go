package secret

import (
	"regexp"
	"slices"
	"strings"
)

// keyLines returns the lines of the private keys in a value, which are unique to the
// key. A variable or the file of a service account may contain JSON escapes for line
// ends.
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

// constant reports whether a line is the first one of an OpenSSH key, which is the same
// for all keys of a kind. If a program wrote the whole key in one line, the line is
// longer.
func constant(line string) bool {
	return strings.HasPrefix(line, "b3BlbnNzaC1rZXktdjEA") && len(line) <= 70
}

// partsOf returns the credentials in a value of several lines, such as .npmrc, .netrc
// or the file of a service account: values after names of credentials, and passwords in
// addresses. The rest of such a file, for example names of hosts and projects, also
// occurs in other texts, so redacting it would make calls impossible. keyLines handles
// armoured keys.
func partsOf(value string) []string {
	if !lineBreaks.MatchString(value) {
		return nil
	}
	var parts []string
	if alone := strings.TrimSpace(value); !lineBreaks.MatchString(alone) {
		parts = append(parts, alone) // in the form of a file
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

// assignedIn returns the values in a line that follow the name of a credential. It does
// not search a value for names again, so its cost is linear.
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

// namesCredential is [LikelyName] for whole words, because a file may contain words
// such as author and keywords.
func namesCredential(name string) bool {
	return slices.ContainsFunc(wordsOf.FindAllString(name, -1), func(word string) bool {
		return slices.Contains(credentialWords, strings.ToLower(word))
	})
}

var (
	names = regexp.MustCompile(`[A-Za-z0-9_.-]+`)
	// assigned matches an optional sign (.netrc has none) and a value.
	assigned = regexp.MustCompile("^[\"']?\\s*([:=>]?)\\s*[\"']?([^\\s\"'`,;<>&\\\\]+)")
	wordsOf  = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

	credentialWords = []string{
		"key", "keys", "apikey", "token", "tokens", "authtoken", "secret", "secrets", "pass", "password", "passwd", "passphrase", "pwd",
		"credential", "credentials", "creds", "auth", "authorization", "cookie", "session",
	}
)
