package decode

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPartsOfASentFile(t *testing.T) {
	prose := strings.Repeat("Note: a, b - c: {d, e}\n", 20_000)
	keys := func(form string) string {
		var b strings.Builder
		for i := range maxParts + 1 {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text string
		most int // 0 for too many
	}{
		"a block":                 {"prompt:\n  system: |\n" + strings.ReplaceAll("    "+prose, "\n", "\n    ") + "\n  task: x\n", 3},
		"a block of an item":      {"steps:\n- text: >-\n" + strings.ReplaceAll("    "+prose, "\n", "\n    ") + "\n  task: x\n", 4},
		"double quotes":           {`{"prompt": {"system": "\"` + strings.ReplaceAll(prose, "\n", `\n`) + `"}}`, 2},
		"single quotes":           {"a: 'it''s " + prose + "'\nb: x\n", 2},
		"an apostrophe":           {"a: it's\nb: don't\n", 2},
		"comments":                {strings.Repeat("# a: b, c: d\n", 20_000) + "a: b # c: d\n", 1},
		"keys of YAML":            {keys("k%d: x\n"), 0},
		"keys behind a block":     {"- a: |\n    x\n" + keys("  k%d: x\n"), 0},
		"keys behind quotes":      {"a: \"x\n  y\"\n" + keys("k%d: x\n"), 0},
		"keys of JSON":            {`{"a":"x"` + keys(`,"k%d":1`) + "}", 0},
		"keys of JSON, apart":     {"{\n\"a\": \"x\"" + keys(",\n  \"k%d\": \"x\"") + "\n}", 0},
		"items":                   {"a:\n" + keys("- %d\n"), 0},
		"items of items":          {"a: " + strings.Repeat("- ", 10) + "\n" + keys("- - - %d\n"), 0},
		"items between brackets":  {"a: [x" + keys(",%d") + "]", 0},
		"brackets":                {strings.Repeat("[", maxParts+1), 0},
		"mappings within a block": {"a:\n" + keys("  - {k: %d}\n"), 0},
	} {
		got := parts([]byte(c.text))
		if c.most > 0 && got > c.most || c.most == 0 && got <= maxParts {
			t.Errorf("%s: %d parts", name, got)
		}
	}
}

// Valid files are far below the bound, and their parts are counted.
func TestFilesThatAreRightHaveFewParts(t *testing.T) {
	paths, err := filepath.Glob("../../../examples/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := parts(text); n == 0 || n > 500 {
			t.Errorf("%s has %d parts", path, n)
		}
	}
}

func TestATextThatIsTooLongIsRefusedBeforeItIsParsed(t *testing.T) {
	if err := CheckSent("spec.yaml", []byte(strings.Repeat("x", maxFile+1))); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("too long: %v", err)
	}
	if err := CheckSent("spec.yaml", []byte("kind: Agent\n")); err != nil {
		t.Error(err)
	}
}

// Without the bound, a file with 16,000 unknown keys took seconds to refuse, with a
// response of megabytes.
func TestATextWithTooManyKeysIsRefusedWithoutParsing(t *testing.T) {
	for name, form := range map[string]string{"spec.yaml": "unknown_%d: x\n", "spec.json": ",\"unknown_%d\":\"x\""} {
		var text bytes.Buffer
		for i := range 16_000 {
			fmt.Fprintf(&text, form, i)
		}
		whole := text.Bytes()
		if name == "spec.json" {
			whole = append(append([]byte(`{"kind":"Agent"`), whole...), '}')
		}
		var err error
		if n := testing.AllocsPerRun(1, func() { err = CheckSent(name, whole) }); n > 100 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
		if err == nil || !strings.Contains(err.Error(), "about 160") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
