package policy

import (
	"path"
	"regexp"
	"strings"
)

// shortName is a name of eight characters and three, under which Windows' file
// systems hold what has a longer one: GIT~1 is .git there, also for Linux when
// it has mounted one.
var shortName = regexp.MustCompile(`^([^.~]{1,6})~[0-9]{1,6}(?:\.([^.]{1,3}))?$`)

// matchesShort reports whether a part of a pattern matches a folded part of a
// path, or may match the longer name of which that is the short one.
func matchesShort(pattern, name string) bool {
	if ok, _ := path.Match(pattern, name); ok {
		return true
	}
	if !strings.Contains(name, "~") {
		return false // as nearly always, which the expression takes ten times as long to say
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

// mayShorten reports whether the beginning of what a pattern stands for may be
// a name. What a pattern leaves open may be anything.
func mayShorten(pattern, name string, length int) bool {
	if strings.ContainsAny(pattern, `*?[\`) {
		return true
	}
	plain := []rune(strings.NewReplacer(" ", "", ".", "").Replace(pattern))
	return string(plain[:min(len(plain), length)]) == name
}

// hashed reports whether a short name is made of two characters and a checksum,
// as it is where several longer names begin alike.
func hashed(pattern, name string) bool {
	return len(name) == 6 && len(pattern) > 2 && strings.HasPrefix(name, pattern[:2]) && strings.Trim(name[2:], "0123456789abcdef") == ""
}
