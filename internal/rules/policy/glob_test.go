package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/policy"
)

func TestPatternMatchesWhatItSays(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		match, guards bool
	}{
		{".git/**", ".git/config", true, true},
		{".git/**", ".git", true, true},
		{".git/**", ".git/a/b", true, true},
		{".git/**", ".github/x", false, false},
		{".git", ".git/config", false, true},
		{".git/", ".git/config", false, true},
		{"**/*.pem", "key.pem", true, true},
		{"**/*.pem", "a/b/key.pem", true, true},
		{"**/*.pem", "key.pem.txt", false, false},
		{"*.pem", "a/key.pem", false, false},
		{"a/*/c", "a/b/c", true, true},
		{"a/*/c", "a/b/d/c", false, false},
		{"a/**/c", "a/c", true, true},
		{"a/**/c", "a/b/d/c", true, true},
		{"/etc/**", "/etc/passwd", true, true},
		{"/etc/**", "etc/passwd", false, false},
		{"**", "anything/at/all", true, true},
		// Other spellings of the same file.
		{".git/**", ".GIT/config", false, true},
		{".git/**", ".git./config", false, true},
		{".git/**", ".git::$INDEX_ALLOCATION/config", false, true},
		{".git/**", `a\..\.git\config`, false, true},
		{".git/**", "GIT~1/config", false, true},
		{".git/**", "git~12", false, true},
		{".git/**", "GI7EBA~1/config", false, true},
		{".git/**", "GITHUB~1/config", false, false},
		{".git/**", "GIT~1.TXT/config", false, false},
		{".git/**", "git~/config", false, false},
		{"conf/production.yaml", "CONF/PRODUC~2.YAM", false, true},
		{"conf/production.yaml", "conf/produc~2.yml", false, false},
		{"**/*.keystore", "a/RELEAS~1.KEY", false, true},
		{"**/*.keystore", "a/RELEAS~1.KEP", false, false},
		{"My Secrets/**", "MYSECR~1/a", false, true},
		{"secrets.pem", "SEA1B2~1.PEM", false, true},
		{"secrets.pem", "SEXYZW~1.PEM", false, false},
		{"secrets.pem", "TEA1B2~1.PEM", false, false},
		{"secrets.pem", "SEA1~1.PEM", false, false},
		{"se.pem", "SEA1B2~1.PEM", false, false},
		{"s.pem", "SEA1B2~1.PEM", false, false},
		{".git/**", ".g\x01it/config", false, true},
	} {
		p := policy.Pattern(c.pattern)
		if p.Match(c.name) != c.match || p.Guards(c.name) != c.guards {
			t.Errorf("%s on %s: match %v, guards %v", p, c.name, p.Match(c.name), p.Guards(c.name))
		}
	}
}

func TestAPatternIsValidThatCanBeMatched(t *testing.T) {
	for pattern, want := range map[policy.Pattern]bool{
		"src/**/*.go": true, "[a-z]": true, "src/[a-": false, "": false,
		policy.Pattern(strings.Repeat("a", 1000)): true, policy.Pattern(strings.Repeat("a", 1001)): false,
	} {
		if got := pattern.Valid(); got != want {
			t.Errorf("%.20s of %d bytes is valid: %t", pattern, len(pattern), got)
		}
	}
}

func TestPatternKnowsWhetherADirectoryMayHoldAMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, dir string
		want         bool
	}{
		{".git/**", ".", true},
		{".git/**", ".git", true},
		{".git/**", ".git/hooks", true},
		{".git/**", "build", false},
		{"**/*.pem", "build", true},
		{"a/*/c.txt", "a/b", true},
		{"a/*/c.txt", "b", false},
		{"a/b.txt", "a", true},
		{"a/b.txt", "a/b.txt", false},
		{".", ".", false},
		{"**", ".", true},
	} {
		if got := policy.Pattern(c.pattern).Below(c.dir); got != c.want {
			t.Errorf("%s below %s: %v", c.pattern, c.dir, got)
		}
	}
}

// A pattern takes time in proportion to its length and the path's, whatever
// both are made of; that it guards more than it matches is what callers build
// on.
func FuzzPattern(f *testing.F) {
	f.Add(".git/**", ".git/config")
	f.Add("**/**/**/a", strings.Repeat("a/", 50)+"b")
	f.Add("[a-", "a")
	f.Add("a/../b", "b")
	f.Add("é.длинный", "é~1.дли")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p := policy.Pattern(pattern)
		if p.Match(name) && !p.Guards(name) {
			t.Errorf("%q matches %q and does not guard it", pattern, name)
		}
		p.Below(name)
	})
}

func TestAPatternOfAbsolutePathsHoldsForADirectorysOwn(t *testing.T) {
	for _, c := range []struct {
		pattern policy.Pattern
		want    []policy.Pattern
	}{
		{"/srv/app/keys/**", []policy.Pattern{"keys/**"}},
		{"/srv/app/.env", []policy.Pattern{".env"}},
		{"/srv/app/**/*.pem", []policy.Pattern{"**/*.pem"}},
		{"/srv/*/.env", []policy.Pattern{".env"}},
		{"/**/app/.env", []policy.Pattern{"**/app/.env", ".env"}},
		{"/srv/**/*.pem", []policy.Pattern{"**/*.pem"}},
		{"/srv/app/**", []policy.Pattern{"**"}},
		{"/srv/app/", []policy.Pattern{"**"}},
		{"/srv/other/.env", nil},
		{"/srv/application/.env", nil},
		{"/srv/**", nil}, // what lies beside the directory
		{"/srv", nil},
		{"/**", nil},
		{"srv/app/.env", nil},
		{"**/*.pem", nil},
	} {
		if got := c.pattern.Within("/srv/app"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.pattern, got, c.want)
		}
	}
}
