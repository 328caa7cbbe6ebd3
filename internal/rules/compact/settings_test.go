package compact_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/rules/compact"
	"github.com/pawlrun/pawl/llm"
)

func TestSettingsAreHeldToTheirBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		settings compact.Settings
		wrong    string
	}{
		"none":                       {compact.Settings{}, ""},
		"a strategy":                 {compact.Settings{Strategy: compact.RollingWindow}, ""},
		"no strategy":                {compact.Settings{Strategy: "guess"}, `no strategy "guess"`},
		"a measure":                  {compact.Settings{Measure: compact.MeasureMessages}, ""},
		"no measure":                 {compact.Settings{Measure: "bytes"}, `no measure "bytes"`},
		"the least ratio":            {compact.Settings{Ratio: 0.1}, ""},
		"too small a ratio":          {compact.Settings{Ratio: 0.09}, "the ratio 0.09"},
		"the whole window":           {compact.Settings{Ratio: 1}, ""},
		"more than the whole":        {compact.Settings{Ratio: 1.01}, "the ratio 1.01"},
		"a ratio below 0":            {compact.Settings{Ratio: -0.5}, "the ratio -0.5"},
		"a window":                   {compact.Settings{Window: 1}, ""},
		"a window below 0":           {compact.Settings{Window: -1}, "below 0"},
		"turns":                      {compact.Settings{KeepTurns: 1}, ""},
		"turns below 0":              {compact.Settings{KeepTurns: -1}, "below 0"},
		"messages":                   {compact.Settings{KeepMessages: 1}, ""},
		"messages below 0":           {compact.Settings{KeepMessages: -1}, "below 0"},
		"turns and messages":         {compact.Settings{KeepTurns: 1, KeepMessages: 1}, "both given"},
		"no summaries":               {compact.Settings{MaxSummaries: new(0)}, ""},
		"summaries below 0":          {compact.Settings{MaxSummaries: new(-1)}, "below 0"},
		"a summary of the user's":    {compact.Settings{SummaryRole: llm.RoleUser}, ""},
		"a summary of the system's":  {compact.Settings{SummaryRole: llm.RoleSystem}, ""},
		"a summary of the assistant": {compact.Settings{SummaryRole: llm.RoleAssistant}, `the role "assistant"`},
	} {
		err := tt.settings.Check()
		if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
