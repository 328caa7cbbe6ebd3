package policy

import (
	"path"
	"regexp"
	"strings"
)

// shortName matches the short names of at most eight and three characters that Windows
// file systems give to long names. GIT~1 is a short name of .git, also on Linux if such
// a file system is mounted.
var shortName = regexp.MustCompile(`^([^.~]{1,6})~[0-9]{1,6}(?:\.([^.]{1,3}))?$`)

// matchesShort reports whether a part of a pattern matches a folded part of a path, or
// may match the long name behind a short name.
func matchesShort(pattern, name string) bool {
	if ok, _ := path.Match(pattern, name); ok {
		return true
	}
	if !strings.Contains(name, "~") {
		return false // this check is ten times as fast as the expression
	}
	m := shortName.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	base, extension := strings.TrimLeft(pattern, "."), ""
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		base, extension = base[:dot], base[dot+1:]
	}
	return mayShorten(extension, m[2], 3) && (mayShorten(base, m[1], 6) || hashed(base, m[1]))
}

// mayShorten reports whether a short name may abbreviate a match of the pattern. A
// wildcard may stand for any text.
func mayShorten(pattern, name string, length int) bool {
	if strings.ContainsAny(pattern, `*?[\`) {
		return true
	}
	plain := []rune(strings.NewReplacer(" ", "", ".", "").Replace(pattern))
	return string(plain[:min(len(plain), length)]) == name
}

// hashed reports whether a short name consists of two characters and a checksum, as
// file systems use when several long names begin alike.
func hashed(pattern, name string) bool {
	return len(name) == 6 && len(pattern) > 2 && strings.HasPrefix(name, pattern[:2]) && strings.Trim(name[2:], "0123456789abcdef") == ""
}
