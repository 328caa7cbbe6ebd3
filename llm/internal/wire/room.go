package wire

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/llm"
)

// Refine extracts from a failure what services of all wires express in the same words:
// that the quota is exhausted, and the size limits.
func Refine(e *llm.Error, failure []byte) {
	readQuota(e, failure)
	readRoom(e, failure)
}

// pattern recognizes a number in the messages of services.
type pattern struct {
	words *regexp.Regexp
	put   func(*llm.Room, int64)
}

func figure(words string, put func(*llm.Room, int64)) pattern {
	return pattern{regexp.MustCompile(`(?is)` + strings.ReplaceAll(words, "N", `([0-9][0-9,]*)`)), put}
}

func window(r *llm.Room, n int64)    { r.Window = n }
func input(r *llm.Room, n int64)     { r.Input = n }
func requested(r *llm.Room, n int64) { r.Requested = n }
func output(r *llm.Room, n int64)    { r.Output = n }

// figures are the patterns for sizes in the messages of services. A count that is only
// a lower bound ("at least") is ignored.
var figures = []pattern{
	figure(`maximum context length (?:is|of) N`, window),         // OpenAI, vLLM, DeepSeek, OpenRouter, SGLang
	figure(`exceed context limit: \d+ \+ \d+ > N`, window),       // Anthropic
	figure(`prompt is too long: \d+ tokens > N maximum`, window), // Anthropic
	figure(`maximum prompt length is N`, window),                 // xAI
	figure(`model with N maximum context length`, window),        // Mistral
	figure(`maximum number of tokens allowed \(N\)`, window),     // Gemini
	figure(`available context size \(N tokens\)`, window),        // llama.cpp
	figure(`"n_ctx": ?N`, window),                                // llama.cpp
	figure("max_new_tokens`? must be <= N", window),              // TGI

	figure(`\(N (?:in the messages|in your prompt|of text input)`, input), // vLLM, OpenAI, OpenRouter
	figure(`exceed context limit: N \+`, input),                           // Anthropic
	figure(`prompt is too long: N tokens`, input),                         // Anthropic
	figure(`messages resulted in N tokens`, input),                        // OpenAI
	figure(`your request has N input tokens`, input),                      // vLLM
	figure(`N tokens from the input`, input),                              // SGLang
	figure(`the request contains N tokens`, input),                        // xAI
	figure(`prompt contains N tokens`, input),                             // Mistral
	figure(`input token count (?:is )?\(?N`, input),                       // Gemini
	figure(`request \(N tokens\)`, input),                                 // llama.cpp
	figure(`"n_prompt_tokens": ?N`, input),                                // llama.cpp
	figure("given: N `?inputs", input),                                    // TGI

	figure(`you requested (?:a total of |about )?N tokens`, requested),

	figure(`max_tokens: \d+ > N, which is the maximum`, output),                                    // Anthropic
	figure(`supports at most N (?:completion|output) tokens`, output),                              // OpenAI
	figure("max_(?:completion_)?tokens`? must be less than or equal to `?N", output),               // Groq
	figure(`valid range of max_tokens is \[\d+, ?N\]`, output),                                     // DeepSeek
	figure(`maximum tokens you requested exceeds the model limit of N`, output),                    // Bedrock
	figure(`can only afford N`, output),                                                            // OpenRouter
	figure(`to N \(exclusive\)`, func(r *llm.Room, n int64) { r.Output = n - 1 }),                  // Gemini
	figure(`max_tokens.{0,40} must be (?:at most|no more than|less than or equal to) N\b`, output), // others
}

// overRate matches the error for a request that is larger than the limit per minute or
// day, so that no wait makes it fit. A smaller request waits until earlier usage
// expires.
var overRate = regexp.MustCompile(`(?i)tokens per (?:min|minute|day)\b.{0,40}limit:? ([0-9][0-9,]*), (?:used:? [0-9][0-9,]*, )?requested:? ([0-9][0-9,]*)`)

// readRoom extracts the size limits from a refusal. A request that exceeds a rate limit
// by itself counts as too large, because waiting does not help.
func readRoom(e *llm.Error, failure []byte) {
	text := e.Message + "\n" + string(failure)
	if m := overRate.FindStringSubmatch(text); m != nil {
		if limit, asked := count(m[1]), count(m[2]); asked > limit {
			e.Class, e.Room = llm.ClassContextOverflow, llm.Room{Window: limit, Requested: asked}
			e.RetryAfter, e.HasRetryAfter = 0, false
		}
		return
	}
	switch e.Class {
	case llm.ClassInvalid, llm.ClassContextOverflow, llm.ClassQuota:
	default:
		return
	}
	for _, f := range figures {
		if m := f.words.FindStringSubmatch(text); m != nil {
			f.put(&e.Room, count(m[1]))
		}
	}
	if e.Room.Window > 0 && e.Class == llm.ClassInvalid {
		e.Class = llm.ClassContextOverflow
	}
}

func count(digits string) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, ",", ""), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// RetryAfter parses how long a provider asks to wait: retry-after-ms, or Retry-After in
// seconds or as a date.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return Wait(ms, time.Millisecond), true
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 {
		return Wait(s, time.Second), true
	}
	if t, err := http.ParseTime(v); err == nil {
		return Bounded(max(t.Sub(ServerTime(h, now)), 0)), true
	}
	return 0, false
}

// ServerTime returns the provider's time if the header has it, because the local clock
// may be wrong.
func ServerTime(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// maxWait bounds a provider's wait, so that no value overflows.
const maxWait = 100 * 365 * 24 * time.Hour

// Bounded limits a wait to maxWait.
func Bounded(d time.Duration) time.Duration { return min(d, maxWait) }

// Wait converts a provider's number of time units to a duration.
func Wait(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxWait/unit) {
		return maxWait
	}
	return time.Duration(n * float64(unit))
}
