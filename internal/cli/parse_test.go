package cli

import (
	"slices"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/journal"
)

func TestAgesMayBeInDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "0.5d": 12 * time.Hour, "12h": 12 * time.Hour, "0s": 0, "1h30m": 90 * time.Minute,
	} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "30", "-1h", "-1d", "1d2h", "nand", "soon", "1e400d", "infd"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func FuzzParseAge(f *testing.F) {
	for _, s := range []string{"30d", "12h", "-1d", "nand", "1e300d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseAge(s); err == nil && d < 0 {
			t.Errorf("%q is %s", s, d)
		}
	})
}

func FuzzNothingHarmlessSteersATerminal(f *testing.F) {
	f.Add("a\x1b[31mb\u202Ec\x9bd\r\n\te")
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{harmless(s), firstLine(s, 40), tail(s, 40)} {
			for _, r := range text {
				if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q becomes %q", s, text)
				}
			}
		}
		if n := len([]rune(tail(s, 40))); n > 40 {
			t.Errorf("%q has %d characters at its end", s, n)
		}
	})
}

func TestALimitsValueHasItsSettingsType(t *testing.T) {
	for _, tt := range []struct {
		setting, text string
		ok            bool
	}{
		{"usd_per_run", "2.50", true}, {"max_cycles", "80", true}, {"max_wall_time_seconds", "0.5", true},
		{"max_cycles", "2.5", false}, {"max_cycles", "0", false}, {"max_cycles", "-1", false}, {"max_cycles", "many", false},
		{"usd_per_run", "NaN", false}, {"usd_per_run", "Inf", false}, {"max_rounds", "3", false}, {"", "3", false},
		{"max_cycles", "none", true}, {"max_retries_per_tool_call", "0", true}, {"max_retries_per_tool_call", "none", false},
		{"usd_per_run", "0", false}, {"max_rounds", "none", false},
	} {
		if _, err := limitValue(tt.setting, tt.text); (err == nil) != tt.ok {
			t.Errorf("%s %s: %v", tt.setting, tt.text, err)
		}
	}
	if !slices.Contains(budget.Settings(), "usd_per_run") {
		t.Errorf("%v", budget.Settings())
	}
}

func TestAFollowerWaitsForTheNextDriverButNotForEver(t *testing.T) {
	now := time.Unix(10_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tt := range []struct {
		name string
		run  journal.Run
		want bool
	}{
		{"driven", journal.Run{Owner: "x", Expiry: now.Add(time.Second), Updated: ago(time.Hour)}, false},
		{"just created, not driven yet", journal.Run{Updated: ago(time.Second)}, false},
		{"its driver went silent just now", journal.Run{Owner: "x", Expiry: ago(time.Second), Updated: ago(time.Hour)}, false},
		{"its driver is long gone", journal.Run{Owner: "x", Expiry: ago(time.Minute), Updated: ago(time.Hour)}, true},
		{"released long ago and never taken up", journal.Run{Updated: ago(time.Hour)}, true},
	} {
		if got := isAbandoned(tt.run, now); got != tt.want {
			t.Errorf("%s: abandoned %t", tt.name, got)
		}
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() && c.Name() != "help" && (c.Short == "" || c.Example == "" || c.Args == nil) {
			t.Errorf("%s lacks a line, an example or a check of its arguments", c.CommandPath())
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk((&app{}).rootCommand())
}
