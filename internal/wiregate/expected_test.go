package wiregate

import (
	"encoding/json"

	"github.com/pawlrun/pawl/llm"
)

// Expected is what independent readers made of an answer.
type Expected struct {
	Text      string `json:"text"`
	Refusal   string `json:"refusal"`
	Reasoning struct {
		Text       string   `json:"text"`
		Signatures []string `json:"signatures"`
		// Redacted counts blocks of sealed thought (Anthropic).
		Redacted int `json:"redacted_blocks"`
		// Encrypted counts items with sealed thought (Responses).
		Encrypted int `json:"encrypted"`
	} `json:"reasoning"`
	ToolCalls []ExpectedCall `json:"tool_calls"`
	// ServerItems are the items that are no text, thought or call of a function.
	ServerItems []string `json:"server_items"`
	ItemOrder   []string `json:"item_order"`
	Finish      struct {
		Raw     *string `json:"raw"`
		Unified *string `json:"ai_sdk_unified"`
	} `json:"finish"`
	Usage      ExpectedUsage  `json:"usage"`
	ResponseID string         `json:"response_id"`
	Model      string         `json:"model"`
	Error      *ExpectedError `json:"error"`
	Oracle     struct {
		Agreement map[string][]string                   `json:"agreement"`
		Disputed  map[string]map[string]json.RawMessage `json:"disputed"`
	} `json:"oracle"`
}

// ExpectedCall is a tool call; Raw holds arguments that are no JSON.
type ExpectedCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Raw       string          `json:"arguments_raw"`
	Valid     bool            `json:"arguments_valid"`
}

// ExpectedUsage counts tokens; nil means that the answer does not say.
type ExpectedUsage struct {
	CacheRead  *int64 `json:"cache_read"`
	CacheWrite *int64 `json:"cache_write"`
	Input      *int64 `json:"input_total"`
	Output     *int64 `json:"output_total"`
	Reasoning  *int64 `json:"reasoning"`
	// ToolUse are prompt tokens of tools that the provider ran (Gemini); they
	// are input to us, because they are paid for.
	ToolUse *int64 `json:"tool_use_prompt"`
}

// ExpectedError is a failed exchange.
type ExpectedError struct {
	Message    string `json:"message"`
	RequestID  string `json:"request_id"`
	Status     int    `json:"http_status"`
	Type       string `json:"type"`
	InStream   bool   `json:"in_stream"`
	RetryAfter string `json:"retry-after"`
}

// agreed reports whether at least two readers saw the same in a field.
func (e *Expected) agreed(field string) bool { return len(e.Oracle.Agreement[field]) >= 2 }

// finish is the neutral reason that an answer must be read as. The readers share no
// word for a paused turn, so its raw reason identifies it.
func (e *Expected) finish() (llm.Finish, bool) {
	if e.Finish.Raw != nil {
		switch *e.Finish.Raw {
		case "pause_turn", "queued", "in_progress":
			return llm.FinishPause, true
		}
	}
	if e.Refusal != "" {
		return llm.FinishRefusal, true
	}
	if e.Finish.Unified == nil {
		return "", false
	}
	f, ok := map[string]llm.Finish{
		"stop": llm.FinishEnd, "tool-calls": llm.FinishTool, "length": llm.FinishLength, "content-filter": llm.FinishRefusal,
	}[*e.Finish.Unified]
	return f, ok
}

// errorClasses is what each failed exchange means for a loop. A class is Pawl's
// own word, so no recording can name it.
var errorClasses = map[string]llm.Class{
	"anthropic-error-400-context":            llm.ClassContextOverflow,
	"anthropic-error-401":                    llm.ClassAuth,
	"anthropic-429-retry-after":              llm.ClassThrottled,
	"anthropic-529":                          llm.ClassOverloaded,
	"anthropic-midstream-overloaded":         llm.ClassOverloaded,
	"chat-200-json-error-body":               llm.ClassOverloaded,
	"chat-azure-error-429-retry-after":       llm.ClassThrottled,
	"chat-groq-error-400-tool-use-failed/01": llm.ClassInvalid,
	"chat-groq-midstream-error-stream/01":    llm.ClassInvalid,
	"chat-llamacpp-error-500":                llm.ClassOverloaded,
	"chat-openai-error-404":                  llm.ClassInvalid,
	"chat-openrouter-error-401":              llm.ClassAuth,
	"chat-openrouter-error-429-retries/01":   llm.ClassThrottled,
	"chat-openrouter-error-429-retries/02":   llm.ClassThrottled,
	"chat-openrouter-error-429-retries/03":   llm.ClassThrottled,
	"gemini-error-400-key":                   llm.ClassAuth,
	"gemini-error-429-quota":                 llm.ClassThrottled,
	"gemini-503":                             llm.ClassOverloaded,
	"openai-429-retry-after-ms":              llm.ClassThrottled,
	"openai-500-html":                        llm.ClassOverloaded,
	"responses-error-unknown-model":          llm.ClassInvalid,
	"responses-failed-quota-stream":          llm.ClassQuota,
}
