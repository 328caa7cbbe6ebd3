package spec

import (
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/decode"
)

// Config is a config file: how to reach providers, information about models, and the
// models of classes and roles. It contains no keys, only the names of variables that
// contain them.
type Config struct {
	Providers map[string]ConfigProvider `yaml:"providers,omitempty"`
	// Models are by "provider/model".
	Models map[string]ConfigModel `yaml:"models,omitempty"`
	// Classes maps capability classes to models.
	Classes map[string]string `yaml:"classes,omitempty"`
	Roles   ConfigRoles       `yaml:"roles,omitempty"`
}

// ConfigProvider describes how to reach one provider.
type ConfigProvider struct {
	BaseURL   string            `yaml:"base_url,omitempty"`
	APIKeyEnv string            `yaml:"api_key_env,omitempty"`
	Headers   map[string]string `yaml:"headers,omitempty"`
	Proxy     string            `yaml:"proxy,omitempty"`
	Profile   string            `yaml:"profile,omitempty"`
}

// ConfigModel overrides the table's entry of a model.
type ConfigModel struct {
	// ContextWindow and MaxOutput are tokens.
	ContextWindow *int         `yaml:"context_window,omitempty"`
	MaxOutput     *int         `yaml:"max_output,omitempty"`
	Price         *ConfigPrice `yaml:"price,omitempty"`
	// Can lists what the model can do beyond text; nil leaves that to the table.
	Can Names `yaml:"can,omitempty"`
}

// ConfigPrice is in USD per million tokens. By default a cached token costs as much as
// a fresh one.
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

// ConfigOptions are facts outside the file that the rules need.
type ConfigOptions struct {
	// Providers are the known providers, which need no address.
	Providers []string
	// Profiles are the known profiles of compatible services.
	Profiles []string
	// Abilities are the possible abilities of models.
	Abilities []string
}

// ReadConfig reads and validates a config file. The error is [decode.Errors] if the
// file exists and is invalid.
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

// keyNames are common names for a key, which does not belong in the file.
var keyNames = []string{"api_key", "apikey", "apiKey", "key", "token", "auth_token", "secret", "password"}

// DecodeNode rejects keys with an error that says where they belong.
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
