package launch_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/files/spec"
	"github.com/pawlrun/pawl/llm/openaichat"
	"github.com/pawlrun/pawl/models"
)

// configKeys returns the keys of a mapping in the config file, including nested ones.
func configKeys(of reflect.Type, path string) (keys []string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Kind() == reflect.Map && of.Elem().Kind() == reflect.Struct:
		name := map[string]string{"providers": "NAME", "models": "PROVIDER/MODEL"}[path]
		keys = append([]string{path + "." + name}, configKeys(of.Elem(), path+"."+name)...)
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
			keys = append(keys, configKeys(of.Field(i).Type, strings.TrimPrefix(path+"."+key, "."))...)
		}
		if strings.HasSuffix(path, "price") {
			keys = append(keys, path)
		}
	default:
		keys = []string{path}
	}
	return keys
}

func configPage(t *testing.T) (page, example string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "config.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("the page has no example")
	}
	return string(text), example
}

func TestThePageOfTheConfigFileHasExactlyItsKeys(t *testing.T) {
	page, _ := configPage(t)
	_, section, _ := strings.Cut(page, "## Keys\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var shown []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		shown = append(shown, row[1])
	}
	want := configKeys(reflect.TypeFor[spec.Config](), "")
	slices.Sort(shown)
	slices.Sort(want)
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("docs/config.md and spec.Config differ (-Config +page):\n%s", diff)
	}
	for _, name := range slices.Concat(openaichat.ProfileNames(), models.Abilities()) {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(section) {
			t.Errorf("the page does not name %q", name)
		}
	}
}

func TestThePageOfTheConfigFileHasEveryProvider(t *testing.T) {
	page, _ := configPage(t)
	_, section, _ := strings.Cut(page, "## Providers\n")
	for _, name := range models.KnownProviders() {
		if !strings.Contains(section, "\n| `"+name+"` |") {
			t.Errorf("the page does not list %s", name)
		}
	}
}

func TestTheExampleOfTheConfigFileIsReadAndSaysEverything(t *testing.T) {
	_, example := configPage(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := launch.ReadConfig(path); err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.Unmarshal([]byte(example), &given); err != nil {
		t.Fatal(err)
	}
	for _, key := range configKeys(reflect.TypeFor[spec.Config](), "") {
		at := any(given)
		for name := range strings.SplitSeq(key, ".") {
			mapping, _ := at.(map[string]any)
			if name = strings.NewReplacer("NAME", "gateway", "PROVIDER/MODEL", "gateway/qwen3-coder").Replace(name); mapping[name] == nil {
				t.Errorf("the example does not say %s", key)
			}
			at = mapping[name]
		}
	}
}
