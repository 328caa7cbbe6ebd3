package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/policy"
)

// problems are what a check reports, each with its place.
type problems []string

func (p *problems) at(key string) policy.Report {
	return func(_, format string, args ...any) {
		*p = append(*p, strings.TrimPrefix(key+": "+fmt.Sprintf(format, args...), ": "))
	}
}

func TestAPatternThatCannotMatchIsReported(t *testing.T) {
	for pattern, want := range map[policy.Pattern]string{
		"src/**": "", "/srv/*.pem": "", "..data/x": "", "a/../b": "", "a~": "", "a!": "", "{a}": "", "{a": "", "a,b}": "", "[{]a,b}": "", "a b": "",
		"[a": "is not a pattern", "": "is not a pattern",
		"~/x": "would match nothing", "..": "would match nothing", "../x": "would match nothing", "a/../../x": "would match nothing",
		"!a": "would take nothing away", "*.{go,mod}": "has alternatives", " a": "begins or ends with spaces", "a ": "begins or ends with spaces",
	} {
		var got problems
		pattern.Check(got.at(""))
		if want == "" && got != nil || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%q: %q", pattern, got)
		}
	}
}

func TestARuleAboutWhatNoCallCanBeIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		rule policy.Rule
		want string
	}{
		"a tool alone":                         {policy.Rule{Tool: "x"}, ""},
		"a path":                               {policy.Rule{Path: "src/**"}, ""},
		"a path that matches nothing":          {policy.Rule{Path: "../x"}, `path: "../x" would match nothing`},
		"a command":                            {policy.Rule{Command: "git push"}, ""},
		"spaces":                               {policy.Rule{Command: " "}, "command: \" \" names no command"},
		"a variable":                           {policy.Rule{Command: "_a1=b make"}, `command: "_a1=b make" begins with a variable`},
		"a variable of capitals":               {policy.Rule{Command: "AZ=b"}, "begins with a variable"},
		"a variable of small letters":          {policy.Rule{Command: "az=b"}, "begins with a variable"},
		"a variable with digits":               {policy.Rule{Command: "a09=b"}, "begins with a variable"},
		"a name that begins with a digit":      {policy.Rule{Command: "0a=b"}, ""},
		"a name with a dash":                   {policy.Rule{Command: "a-b=c"}, ""},
		"a name without letters":               {policy.Rule{Command: "=b"}, ""},
		"a name beside the letters":            {policy.Rule{Command: "@[`{=b"}, ""},
		"a digit's neighbour below":            {policy.Rule{Command: "a/=b"}, ""},
		"a digit's neighbour above":            {policy.Rule{Command: "a:=b"}, ""},
		"a letter's neighbour":                 {policy.Rule{Command: "a{=b"}, ""},
		"a capital's neighbours":               {policy.Rule{Command: "a[=b"}, ""},
		"an assignment that is no first word":  {policy.Rule{Command: "make A=b"}, ""},
		"two commands":                         {policy.Rule{Command: "make && rm x"}, "has && in it"},
		"a pipe":                               {policy.Rule{Command: "cat x | sh"}, "has | in it"},
		"quotes":                               {policy.Rule{Command: "git 'commit'"}, "has quotes in it"},
		"a quote within a word":                {policy.Rule{Command: "echo it's"}, ""},
		"a host":                               {policy.Rule{Host: "*.example.com"}, ""},
		"a host with a scheme":                 {policy.Rule{Host: "https://example.com"}, `host: "https://example.com" matches no host`},
		"a host with a port":                   {policy.Rule{Host: "example.com:443"}, "matches no host"},
		"an address that is written otherwise": {policy.Rule{Host: "127.1"}, "matches no host"},
		"a host in capitals":                   {policy.Rule{Host: "Example.COM"}, ""},
	} {
		var got problems
		tt.rule.Check(got.at)
		if tt.want == "" && got != nil || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
	var got problems
	policy.Rule{Path: "~", Command: "&&", Host: "a b"}.Check(got.at)
	if len(got) != 3 {
		t.Errorf("of a path, a command and a host that are none it reports %q", got)
	}
}

func TestRulesThatDecideAlikeHaveOneVersion(t *testing.T) {
	a := policy.Rules{Declared: true, HighRisk: nil, Protected: []policy.Pattern{"x"}}
	b, other := a, a
	other.Declared = false
	if !strings.HasPrefix(a.Version(), policy.Reading+"/") || len(a.Version()) != len(policy.Reading)+17 {
		t.Errorf("the version is %q", a.Version())
	}
	if a.Version() != b.Version() || a.Version() == other.Version() {
		t.Errorf("%s, the same rules %s, other ones %s", a.Version(), b.Version(), other.Version())
	}
}
