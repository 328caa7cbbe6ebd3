package openaichat

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Echo says how a service wants a model's earlier reasoning back: sending it
// helps some models and makes the answers of others worse.
type Echo string

// The ways to echo reasoning.
const (
	EchoNone    Echo = ""
	EchoContent Echo = "reasoning_content"
	EchoPlain   Echo = "reasoning"
	EchoDetails Echo = "reasoning_details"
	// EchoSame: under the name that the service gave it.
	EchoSame Echo = "same"
)

// Format says how a service is asked for an answer by schema.
type Format string

// The ways to ask for an answer by schema.
const (
	// FormatSchema: the service holds the model to the schema.
	FormatSchema Format = ""
	// FormatSchemaAlone: it does so only where no tools are offered.
	FormatSchemaAlone Format = "schema_without_tools"
	// FormatObject: it holds the model to JSON; the schema is in the prompt.
	FormatObject Format = "json_object"
)

// Profile is how a compatible service differs from OpenAI's own.
type Profile struct {
	Name string
	// MaxTokens is the name of the field that caps the answer.
	MaxTokens string
	// Echo says how reasoning goes back.
	Echo Echo
	// NoUsageOption says that the service rejects stream_options.
	NoUsageOption bool
	// CacheKey says that prompt_cache_key is understood.
	CacheKey bool
	// EmptyContent says that an assistant message with calls must carry
	// content, if only "".
	EmptyContent bool
	// ShortIDs says that ids of calls must have nine letters and digits.
	ShortIDs bool
	// Format is how answers by schema are asked for.
	Format Format
	// LateSystem says that a system message may stand anywhere. Servers with
	// chat templates of models refuse one that is not the first.
	LateSystem bool
	// NoTags says that tags in a text mean nothing. Of other services a thought
	// between tags at the beginning of an answer (<think>, [THINK], gpt-oss's
	// analysis channel) is reasoning, and <tool_call> as the whole answer is none.
	NoTags bool
	// TextCalls says that the service may leave a call of its models as text,
	// <tool_call>{…}</tool_call>. Where that is the whole answer it is the call.
	TextCalls bool
	// Hosted are the tools that the service runs itself, by the names that
	// [llm.Request.ProviderTools] has; nil for none.
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

// hosts tells services apart by the end of their host name.
var hosts = []struct{ suffix, profile string }{
	{"api.openai.com", "openai"}, {"openai.azure.com", "azure"}, {"services.ai.azure.com", "azure"},
	{"deepseek.com", "deepseek"}, {"z.ai", "zai"}, {"bigmodel.cn", "zai"}, {"openrouter.ai", "openrouter"},
	{"groq.com", "groq"}, {"mistral.ai", "mistral"}, {"x.ai", "xai"}, {"ai-gateway.vercel.sh", "vercel"},
}

// ProfileFor guesses the profile from a base URL. What it does not know gets
// the habits that most compatible servers share; one that names its thoughts is
// taken to read them under that name.
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
