package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableOfModelsFitsTheTerminal(t *testing.T) {
	list := modelList{Models: []modelRow{
		{Model: "openai/gpt-5", ContextWindow: 400_000, Usable: true},
		{Model: "openrouter/openai/gpt-5.1-codex-max", ContextWindow: 400_000, Usable: true},
	}}
	for _, tt := range []struct {
		width int
		want  []string
	}{
		{0, []string{
			"MODEL                                WINDOW  OUTPUT    IN $   OUT $  USE  CAN",
			"openai/gpt-5                           400k       ?       ?       ?  yes  ------",
			"openrouter/openai/gpt-5.1-codex-max    400k       ?       ?       ?  yes  ------",
		}},
		{80, []string{
			"MODEL                                WINDOW  OUTPUT    IN $   OUT $  USE  CAN",
			"openai/gpt-5                           400k       ?       ?       ?  yes  ------",
			"openrouter/openai/gpt-5.1-codex-max    400k       ?       ?       ?  yes  ------",
		}},
		{60, []string{
			"MODEL            WINDOW  OUTPUT    IN $   OUT $  USE  CAN",
			"openai/gpt-5       400k       ?       ?       ?  yes  ------",
			"openrouter/openai/gpt-5.1-codex-max",
			"                   400k       ?       ?       ?  yes  ------",
		}},
	} {
		got := strings.Split(modelTable(list, tt.width), "\n")[:len(tt.want)]
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", tt.width, diff)
		}
	}
}
