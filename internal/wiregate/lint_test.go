package wiregate_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/wiregate"
)

func TestRecordedRequestsKeepTheRulesOfTheirWires(t *testing.T) {
	for _, api := range []string{"anthropic-messages", "openai-responses", "openai-chat", "gemini"} {
		wiregate.LintGate(t, api)
	}
}
