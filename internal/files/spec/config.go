package spec

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// Config is a config file: how providers are reached, what is known of models,
// and which models the names of classes and roles stand for. No key stands in
// it, only the names of variables that hold one.
type Config struct {
	Providers map[string]ConfigProvider `yaml:"providers,omitempty"`
	// Models are by "provider/model".
	Models map[string]ConfigModel `yaml:"models,omitempty"`
	// Classes name the model of each capability class.
	Classes map[string]string `yaml:"classes,omitempty"`
	Roles   ConfigRoles       `yaml:"roles,omitempty"`
}

// ConfigProvider is how one provider is reached.
type ConfigProvider struct {
	BaseURL   string            `yaml:"base_url,omitempty"`
	APIKeyEnv string            `yaml:"api_key_env,omitempty"`
	Headers   map[string]string `yaml:"headers,omitempty"`
	Proxy     string            `yaml:"proxy,omitempty"`
	Profile   string            `yaml:"profile,omitempty"`
}

// ConfigModel is what the owner knows better than the table of models.
type ConfigModel struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow *int         `yaml:"context_window,omitempty"`
	MaxOutput     *int         `yaml:"max_output,omitempty"`
	Price         *ConfigPrice `yaml:"price,omitempty"`
	// Can lists what the model can do beyond text; nil leaves that to the table.
	Can Names `yaml:"can,omitempty"`
}

// ConfigPrice is in USD per million tokens. By default a cached token costs as much
// as a fresh one.
type ConfigPrice struct {
	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read,omitempty"`
	CacheWrite *float64 `yaml:"cache_write,omitempty"`
}

// ConfigRoles are the models of roles for which an agent file names none.
type ConfigRoles struct {
	Architect string `yaml:"architect,omitempty"`
	Editor    string `yaml:"editor,omitempty"`
	Subagent  string `yaml:"subagent,omitempty"`
}

// ConfigOptions are what the rules need to know of the world outside the file.
type ConfigOptions struct {
	// Providers are known by name and need no address.
	Providers []string
	// Profiles are the known habits of compatible services.
	Profiles []string
	// Abilities are what a model may be said to do.
	Abilities []string
}

// ReadConfig reads and validates a config file. The error is [decode.Errors] when the
// file is there and wrong.
func ReadConfig(path string, o ConfigOptions) (*Config, error) {
	data, err := decode.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return ParseConfig(path, data, o)
}

// ParseConfig validates a config file's content. The error is [decode.Errors].
func ParseConfig(path string, data []byte, o ConfigOptions) (*Config, error) {
	r, c := decode.New(path), &Config{}
	if r.Fill(c, data, "a config: providers, models, classes, roles", 0) {
		c.validate(r, o)
	}
	if len(r.Problems) > 0 {
		return nil, r.All()
	}
	return c, nil
}

// keyNames are what people call a key that does not belong in a file.
var keyNames = []string{"api_key", "apikey", "apiKey", "key", "token", "auth_token", "secret", "password"}

// DecodeNode refuses keys in a way that says where they belong.
func (p *ConfigProvider) DecodeNode(d *decode.Decoder, n *yaml.Node, path string) {
	kept := *n
	kept.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; n.Kind == yaml.MappingNode && slices.Contains(keyNames, key.Value) {
			d.Fail(key, decode.Join(path, key.Value), "api_key_env: NAME_OF_A_VARIABLE", "no key belongs in a file; name the variable that holds it")
			continue
		}
		kept.Content = append(kept.Content, n.Content[i], n.Content[i+1])
	}
	if n.Kind != yaml.MappingNode {
		kept.Content = n.Content
	}
	d.Object(&kept, path, reflect.ValueOf(p).Elem())
}
