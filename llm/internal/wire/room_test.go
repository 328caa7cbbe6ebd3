package wire_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/llm/internal/wire"
)

func TestWhatARefusalSaysOfRoomIsRead(t *testing.T) {
	const overflow, invalid, quota, throttled = llm.ClassContextOverflow, llm.ClassInvalid, llm.ClassQuota, llm.ClassThrottled
	for _, c := range []struct {
		message string
		class   llm.Class
		want    llm.Room
		becomes llm.Class
	}{
		{"This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (808 in the messages, 8192 in the completion). Please reduce the length of the messages or completion.", invalid, llm.Room{Window: 4096, Input: 808, Requested: 9000}, overflow},
		{"'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 808 input tokens (8192 > 4096 - 808).", invalid, llm.Room{Window: 4096, Input: 808}, overflow},
		{"This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens.", invalid, llm.Room{Window: 32768}, overflow},
		{"This endpoint's maximum context length is 65536 tokens. However, you requested about 90000 tokens (80000 of text input, 10000 in the output).", invalid, llm.Room{Window: 65536, Input: 80000, Requested: 90000}, overflow},
		{"Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 9000 tokens: 808 tokens from the input messages and 8192 tokens for the completion.", invalid, llm.Room{Window: 4096, Input: 808, Requested: 9000}, overflow},
		{"This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens.", overflow, llm.Room{Window: 128000, Input: 204308}, overflow},
		{"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again", overflow, llm.Room{Window: 200000, Input: 188240}, overflow},
		{"prompt is too long: 208310 tokens > 200000 maximum", overflow, llm.Room{Window: 200000, Input: 208310}, overflow},
		{"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", overflow, llm.Room{Window: 1048576, Input: 1200000}, overflow},
		{"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", overflow, llm.Room{Window: 4096, Input: 5000}, overflow},
		{`{"error":{"message":"the request exceeds the available context size","n_prompt_tokens":5000,"n_ctx":4096}}`, overflow, llm.Room{Window: 4096, Input: 5000}, overflow},
		{"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", invalid, llm.Room{Window: 32768, Input: 40000}, overflow},
		{"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`", invalid, llm.Room{Window: 4097, Input: 3000}, overflow},
		{"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude", invalid, llm.Room{Output: 64000}, invalid},
		{"max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.", invalid, llm.Room{Output: 16384}, invalid},
		{"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model", invalid, llm.Room{Output: 8192}, invalid},
		{"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.", invalid, llm.Room{Output: 4096}, invalid},
		{"Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).", invalid, llm.Room{Output: 65536}, invalid},
		{"This request requires more credits, or fewer max_tokens. You requested up to 8192 tokens, but can only afford 3000.", quota, llm.Room{Output: 3000}, quota},
		{"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 35064. The input or output tokens must be reduced in order to run successfully.", throttled, llm.Room{Window: 30000, Requested: 35064}, overflow},
		{"Request too large for model `llama` in organization `org` service tier `on_demand` on tokens per minute (TPM): Limit 6,000, Requested 11,814, please reduce your message size and try again.", throttled, llm.Room{Window: 6000, Requested: 11814}, overflow},
		{"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.", throttled, llm.Room{}, throttled},
		{"Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1.", throttled, llm.Room{}, throttled},
		{"The maximum context length is 4096 tokens, and I am busy", llm.ClassOverloaded, llm.Room{}, llm.ClassOverloaded},
		{"messages.0: bad", invalid, llm.Room{}, invalid},
	} {
		e := &llm.Error{Class: c.class, Message: c.message, RetryAfter: time.Second, HasRetryAfter: true}
		wire.Refine(e, []byte(c.message))
		if e.Room != c.want || e.Class != c.becomes || e.HasRetryAfter == (c.class == throttled && c.becomes == overflow) {
			t.Errorf("%s\n%s, %+v, a wait: %t", c.message, e.Class, e.Room, e.HasRetryAfter)
		}
	}
}
