package secret

import (
	"regexp"
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

// constant reports whether a line is the first one of OpenSSH's keys, which is the
// same for all of a kind. Where a program wrote the whole key in one line, it is
// longer.
func constant(line string) bool {
	return strings.HasPrefix(line, "b3BlbnNzaC1rZXktdjEA") && len(line) <= 70
}
