// Command modelprices makes models/prices.json from a copy of models.dev: the
// providers that Pawl speaks, the models that answer in text, and of each what
// budgets need.
//
// The path of the copy is the first argument, the date of its data the second,
// and the file to write the third.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

var providers = []string{"anthropic", "deepseek", "google", "groq", "mistral", "openai", "openrouter", "xai", "zai"}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "modelprices:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: modelprices MODELS.JSON DATE PRICES.JSON")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	out, err := convert(data, args[1])
	if err != nil {
		return fmt.Errorf("convert %s: %w", args[0], err)
	}
	return os.WriteFile(args[2], out, 0o644)
}

// The parts of models.dev that matter here. Prices are USD per million tokens.
type source struct {
	Cost       *cost `json:"cost"`
	Modalities struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
	Tools     bool `json:"tool_call"`
	Reasoning bool `json:"reasoning"`
	Schema    bool `json:"structured_output"`
	Limit     struct {
		Context int `json:"context"`
		Output  int `json:"output"`
	} `json:"limit"`
}

type cost struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	Reasoning  *float64 `json:"reasoning"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
	Tiers      []struct {
		cost
		Tier struct {
			Size int64 `json:"size"`
		} `json:"tier"`
	} `json:"tiers"`
}

// convert makes the table, one model a line, so that a newer copy of the data
// shows as a readable difference.
func convert(data []byte, date string) ([]byte, error) {
	var all map[string]map[string]source
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"date\":%q,\"models\":{", date)
	first := true
	for _, provider := range providers {
		for _, name := range sorted(all[provider]) {
			m := all[provider][name]
			if !m.usable(name) {
				continue
			}
			line, err := json.Marshal(models.Info{
				Price: m.Cost.price(), ContextWindow: m.Limit.Context, MaxOutput: m.Limit.Output, Can: m.abilities(),
			})
			if err != nil {
				return nil, err
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			fmt.Fprintf(&b, "\n%q:%s", provider+"/"+name, line)
		}
	}
	b.WriteString("\n}}\n")
	return b.Bytes(), nil
}

func sorted(m map[string]source) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// usable leaves out what is not a model of text, and what is billed in a way
// that input and output prices do not tell. Google's own "latest" names go from one
// model to the next, and the source keeps the price of an earlier one: a fifth of
// what it has under OpenRouter's name for the same.
func (m source) usable(name string) bool {
	switch {
	case strings.HasPrefix(name, "gemini-") && strings.HasSuffix(name, "-latest"):
		return false
	case m.Cost == nil, m.Limit.Context <= 0, strings.Contains(name, "embed"):
		return false
	case !slices.Equal(m.Modalities.Output, []string{"text"}), len(m.Cost.Tiers) > 1:
		return false
	case m.Cost.Reasoning != nil && *m.Cost.Reasoning != m.Cost.Output:
		return false
	}
	return true
}

func (m source) abilities() []string {
	var can []string
	for _, a := range []struct {
		has  bool
		name string
	}{
		{m.Tools, models.CanTools}, {m.Reasoning, models.CanReasoning}, {m.Schema, models.CanSchema},
		{slices.Contains(m.Modalities.Input, "image"), models.CanImages},
		{slices.Contains(m.Modalities.Input, "pdf"), models.CanFiles},
		{slices.Contains(m.Modalities.Input, "audio"), models.CanAudio},
	} {
		if a.has {
			can = append(can, a.name)
		}
	}
	return can
}

// price fills what the source leaves out: tokens without a cache price cost
// what fresh ones do.
func (c *cost) price() llm.Price {
	p := llm.Price{Input: c.Input, Output: c.Output, CacheRead: c.Input, CacheWrite: c.Input}
	if c.CacheRead != nil {
		p.CacheRead = *c.CacheRead
	}
	if c.CacheWrite != nil {
		p.CacheWrite = *c.CacheWrite
	}
	for _, t := range c.Tiers {
		long := t.price()
		p.Long = &llm.LongPrice{Over: t.Tier.Size, Input: long.Input, Output: long.Output, CacheRead: long.CacheRead, CacheWrite: long.CacheWrite}
	}
	return p
}
