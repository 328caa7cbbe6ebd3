package openaichat

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Echo says how a service wants a model's earlier reasoning back: sending it back
// improves the answers of some models and makes those of others worse.
type Echo string

// The ways to send reasoning back.
const (
	EchoNone    Echo = ""
	EchoContent Echo = "reasoning_content"
	EchoPlain   Echo = "reasoning"
	EchoDetails Echo = "reasoning_details"
	// EchoSame: under the name that the service used.
	EchoSame Echo = "same"
)

// Format says how a request asks a service for an answer by schema.
type Format string

// The ways to ask for an answer by schema.
const (
	// FormatSchema: the service enforces the schema.
	FormatSchema Format = ""
	// FormatSchemaAlone: it does so only if no tools are offered.
	FormatSchemaAlone Format = "schema_without_tools"
	// FormatObject: it enforces JSON; the schema is in the prompt.
	FormatObject Format = "json_object"
)

// Profile describes how a compatible service differs from OpenAI's.
type Profile struct {
	Name string
	// MaxTokens is the name of the field that caps the answer.
	MaxTokens string
	// Echo says how reasoning is sent back.
	Echo Echo
	// NoUsageOption reports that the service rejects stream_options.
	NoUsageOption bool
	// CacheKey reports that the service accepts prompt_cache_key.
	CacheKey bool
	// EmptyContent reports that an assistant message with calls must have content, even
	// if it is "".
	EmptyContent bool
	// ShortIDs reports that ids of calls must consist of nine letters and digits.
	ShortIDs bool
	// Format says how a request asks for an answer by schema.
	Format Format
	// LateSystem reports that a system message may be at any position. Servers that use
	// the chat templates of models reject one that is not first.
	LateSystem bool
	// NoTags reports that tags in a text have no meaning. With other services, text
	// between tags at the beginning of an answer (<think>, [THINK], gpt-oss's analysis
	// channel) is reasoning, and an answer that consists of <tool_call> is malformed.
	NoTags bool
	// TextCalls reports that the service may leave a model's call as text,
	// <tool_call>{…}</tool_call>. A text that consists of such calls is decoded as
	// calls.
	TextCalls bool
	// Hosted are the tools that the service runs itself, by their names in
	// [llm.Request.ProviderTools]; nil for none.
	Hosted map[string]Hosted
}

// The profiles follow the recordings of their services, except two that have none:
//
// vllm, from its documentation ("Reasoning Outputs") and its issues: thoughts
// are in reasoning; from 0.11.1 to 0.15 also in reasoning_content, and before
// in that alone (vllm-project/vllm#27752, #33402). It reads back
// reasoning alone, and the model's template decides what the model sees
// (#38488). Ids of calls begin with chatcmpl-tool-. The requested usage is
// in a last chunk without choices. Errors are at the top or in error,
// with the status as code.
//
// xai, from its documentation and the recordings that charmbracelet/fantasy
// keeps (providertests): a call arrives whole in one chunk ("Function calling").
// Thoughts are in reasoning_content, which follows the content in a whole
// answer, and a message of the assistant has that member. completion_tokens excludes
// reasoning_tokens, and total_tokens includes them ("Consumption and rate
// limits"), which identifies the form of the usage. A bad key is a 400 with a plain
// string in error.
//
// vercel has OpenRouter's reasoning_details, with Gemini's signature of a call in
// an entry that has the call's id (earendil-works/pi#3255,
// 8monkey-ai/hebo-gateway#186). llamacpp reads reasoning_content of gpt-oss and
// other models that were trained to see it again (ggml-org/llama.cpp#16934).
var profiles = map[string]Profile{
	"openai":     {Name: "openai", MaxTokens: "max_completion_tokens", CacheKey: true, LateSystem: true, NoTags: true, Hosted: openAIHosted},
	"azure":      {Name: "azure", MaxTokens: "max_completion_tokens", LateSystem: true},
	"deepseek":   {Name: "deepseek", MaxTokens: "max_tokens", Echo: EchoContent, EmptyContent: true, Format: FormatObject},
	"zai":        {Name: "zai", MaxTokens: "max_tokens", Echo: EchoContent, Format: FormatObject},
	"openrouter": {Name: "openrouter", MaxTokens: "max_tokens", Echo: EchoDetails, Hosted: openRouterHosted},
	"groq":       {Name: "groq", MaxTokens: "max_tokens", Format: FormatSchemaAlone, Hosted: groqHosted},
	"mistral":    {Name: "mistral", MaxTokens: "max_tokens", NoUsageOption: true, EmptyContent: true, ShortIDs: true},
	"vercel":     {Name: "vercel", MaxTokens: "max_tokens", Echo: EchoDetails},
	"xai":        {Name: "xai", MaxTokens: "max_tokens", Echo: EchoContent},
	"ollama":     {Name: "ollama", MaxTokens: "max_tokens", Echo: EchoContent, Format: FormatSchemaAlone, TextCalls: true},
	"llamacpp":   {Name: "llamacpp", MaxTokens: "max_tokens", Echo: EchoContent, Format: FormatSchemaAlone, TextCalls: true},
	"vllm":       {Name: "vllm", MaxTokens: "max_tokens", Echo: EchoPlain, Format: FormatSchemaAlone, TextCalls: true},
}

// ProfileNamed returns the profile of a service by its name.
func ProfileNamed(name string) (Profile, bool) {
	p, ok := profiles[name]
	return p, ok
}

// ProfileNames lists the profiles.
func ProfileNames() []string { return slices.Sorted(maps.Keys(profiles)) }

// hosts maps the ends of host names to profiles.
var hosts = []struct{ suffix, profile string }{
	{"api.openai.com", "openai"}, {"openai.azure.com", "azure"}, {"services.ai.azure.com", "azure"},
	{"deepseek.com", "deepseek"}, {"z.ai", "zai"}, {"bigmodel.cn", "zai"}, {"openrouter.ai", "openrouter"},
	{"groq.com", "groq"}, {"mistral.ai", "mistral"}, {"x.ai", "xai"}, {"ai-gateway.vercel.sh", "vercel"},
}

// ProfileFor guesses the profile from a base URL. An unknown service gets a profile
// that suits most compatible servers; if it names its reasoning, the reasoning is sent
// back under that name.
func ProfileFor(baseURL string) Profile {
	u, err := url.Parse(baseURL)
	if err == nil {
		for _, h := range hosts {
			if host := u.Hostname(); host == h.suffix || strings.HasSuffix(host, "."+h.suffix) {
				return profiles[h.profile]
			}
		}
		if u.Port() == "11434" {
			return profiles["ollama"]
		}
	}
	return Profile{Name: "compatible", MaxTokens: "max_tokens", Echo: EchoSame}
}
