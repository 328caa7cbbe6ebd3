package external

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// limit is a provider's limit that a program has reached: its message, empty for none,
// and when the limit ends, nil if unknown.
type limit struct {
	said  string
	until *time.Time
}

// signs returns the patterns of the known programs' messages about a limit.
func signs() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b(usage|rate|session|weekly|\d+-hour)[ _-]?limit(s)? (reached|exceeded|hit)`),
		regexp.MustCompile(`(?i)\bhit your ([a-z-]+ )?limit`),
		regexp.MustCompile(`(?i)\brate_limit_(error|exceeded)\b`),
		regexp.MustCompile(`(?i)\brate[ -]?limited\b`),
		regexp.MustCompile(`(?i)\btoo many requests\b`),
		regexp.MustCompile(`(?i)\b(status|error|http|code)[^\n]{0,12}\b429\b`),
		regexp.MustCompile(`\bRESOURCE_EXHAUSTED\b`),
		regexp.MustCompile(`(?i)\b(exceeded|exhausted) your [^\n]{0,40}(quota|capacity)`),
		regexp.MustCompile(`(?i)\bquota exceeded\b`),
	}
}

// limitIn finds a limit in a program's last lines.
func limitIn(text string, now time.Time) (l limit) {
	for _, sign := range signs() {
		if at := sign.FindStringIndex(text); at != nil {
			start := strings.LastIndexByte(text[:at[0]], '\n') + 1
			line, _, _ := strings.Cut(text[start:], "\n")
			l = limit{said: upTo(strings.TrimSpace(line), 300)}
			l.ends(text, now)
			return l
		}
	}
	return l
}

// ends finds when a limit ends: an absolute or a relative time.
func (l *limit) ends(text string, now time.Time) {
	moment := regexp.MustCompile(`(?i)(?:\||resets?_?at\D{0,4})([1-9]\d{9})\b`).FindStringSubmatch(text)
	if moment != nil {
		seconds, _ := strconv.ParseInt(moment[1], 10, 64)
		l.at(seconds)
		return
	}
	rest := regexp.MustCompile(`(?i)\b(?:try again|retry|resets?|retry[- ]after)\b[^\n\d]{0,12}(\d[^\n]{0,60})`).FindStringSubmatch(text)
	if rest == nil {
		return
	}
	units := map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	var wait time.Duration
	part := regexp.MustCompile(`(?i)^[ ,]*(?:and )?(\d{1,6})(?:\.\d+)? ?(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?\b`)
	for left := rest[1]; ; {
		found := part.FindStringSubmatch(left)
		if found == nil {
			break
		}
		n, _ := strconv.Atoi(found[1])
		wait += time.Duration(n) * units[strings.ToLower(found[2])]
		left = left[len(found[0]):]
	}
	if wait > 0 && wait < 40*24*time.Hour {
		until := now.Add(wait).UTC()
		l.until = &until
	}
}
