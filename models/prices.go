package models

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/llm"
)

//go:generate go run ../internal/modelprices ../../shared/fixtures/models/models.json 2026-07-02 prices.json

//go:embed prices.json
var pricesJSON []byte

// Info is the table's entry of a model.
type Info struct {
	Price llm.Price `json:"price"`
	// ContextWindow and MaxOutput are tokens; 0 means unknown.
	ContextWindow int `json:"context,omitempty"`
	MaxOutput     int `json:"output,omitempty"`
	// Can lists what the model can do beyond text, see the Can constants.
	Can []string `json:"can,omitempty"`

	unpriced bool
}

// Abilities of models, in [Info.Can].
const (
	CanTools     = "tools"
	CanReasoning = "reasoning"
	CanSchema    = "schema"
	CanImages    = "images"
	CanFiles     = "files"
	CanAudio     = "audio"
)

// Abilities lists every ability, in the order in which they are shown.
func Abilities() []string {
	return []string{CanTools, CanReasoning, CanSchema, CanImages, CanFiles, CanAudio}
}

// Priced reports whether Price is known; it may be known to be 0.
func (i Info) Priced() bool { return !i.unpriced }

// Table is the dated list of known models, by "provider/model".
type Table struct {
	Date   string          `json:"date"`
	Models map[string]Info `json:"models"`
}

// Known returns the table that this version was built with. All callers share it
// and must not change it.
func Known() (Table, error) { return known() }

var known = sync.OnceValues(func() (Table, error) {
	var t Table
	if err := json.Unmarshal(pricesJSON, &t); err != nil {
		return t, fmt.Errorf("models: the table of prices: %w", err)
	}
	return t, nil
})

// Lookup returns the entry of a target. Only the exact name counts, because a price
// guessed from a similar name is worse than none. Local models cost nothing.
func (t Table) Lookup(target string) (Info, bool) {
	if local(target) {
		return Info{}, true
	}
	info, ok := t.Models[target]
	return info, ok
}

// Find adds the provider to a model's name, if a provider has the model; of several it
// takes the first in the alphabet.
func (t Table) Find(name string) (target string, known bool) {
	for whole := range t.Models {
		if _, own, _ := strings.Cut(whole, "/"); own == name && (!known || whole < target) {
			target, known = whole, true
		}
	}
	return target, known
}
