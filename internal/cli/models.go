package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/llm"
	"github.com/pawlrun/pawl/models"
)

// modelRow is one model of the list.
type modelRow struct {
	Model         string     `json:"model"`
	ContextWindow int        `json:"contextWindow,omitempty"`
	MaxOutput     int        `json:"maxOutput,omitempty"`
	Price         *llm.Price `json:"price,omitempty"`
	Can           []string   `json:"can"`
	Usable        bool       `json:"usable"`
	// Why is why the model cannot be called.
	Why string `json:"why,omitempty"`
}

// modelList is the list as one object. Prices are USD per million tokens, as
// of Date.
type modelList struct {
	Date   string     `json:"date"`
	Models []modelRow `json:"models"`
}

func (a *app) modelsCommand() *cobra.Command {
	var asJSON, usable bool
	c := &cobra.Command{
		Use:   "models [FILTER]",
		Short: "List known models with context windows and prices",
		Long: `Lists the models of the built-in table and the config file: context window and output limit in tokens,
prices in USD per million tokens, capabilities beyond text, and whether the provider's API key is set.
FILTER keeps the names that contain it. A model that is not listed can be called too; its price is then
unknown.`,
		Example: "  pawl models claude\n  pawl models --usable\n  pawl models gpt-5 --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := a.listModels(strings.Join(args, ""), usable)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			if len(list.Models) == 0 {
				return a.noModels(list, strings.Join(args, ""), usable)
			}
			return a.printModels(list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().BoolVar(&usable, "usable", false, "only models that can be called")
	return c
}

func (a *app) listModels(filter string, onlyUsable bool) (modelList, error) {
	config, err := a.config()
	if err != nil {
		return modelList{}, err
	}
	known, date, err := (&models.Resolver{Config: config}).List()
	if err != nil {
		return modelList{}, err
	}
	list := modelList{Date: date, Models: []modelRow{}}
	for _, m := range known {
		if onlyUsable && m.Unusable != nil || !strings.Contains(strings.ToLower(m.Name), strings.ToLower(filter)) {
			continue
		}
		row := modelRow{
			Model: m.Name, ContextWindow: m.Info.ContextWindow, MaxOutput: m.Info.MaxOutput,
			Can: append([]string{}, m.Info.Can...), Usable: m.Unusable == nil, Why: whyNot(m.Unusable),
		}
		if m.Info.Priced() {
			row.Price = &m.Info.Price
		}
		list.Models = append(list.Models, row)
	}
	return list, nil
}

// whyNot returns the reason without the words that the list already has.
func whyNot(err error) string {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[*llm.Error](err); ok {
		return failure.Message
	}
	return err.Error()
}

// noModels returns why a list is empty.
func (a *app) noModels(list modelList, filter string, usable bool) error {
	if usable {
		all, err := a.listModels(filter, false)
		if err != nil {
			return err
		}
		if len(all.Models) > 0 {
			fmt.Fprintln(a.err, "no matching model can be called; 'pawl models' says which API keys are missing")
			return nil
		}
	}
	fmt.Fprintf(a.err, "no model matches in the table of %s; a model that is not listed can be called too\n", list.Date)
	return nil
}

// longestName bounds the column of names; longer names move only their own line.
const longestName = 44

func (a *app) printModels(list modelList) error {
	width := 0
	if s := screenOf(a.out, os.Getenv); s.terminal {
		width = s.width()
	}
	return a.printf("%s", modelTable(list, width))
}

// modelTable returns models as a table. On a terminal that is too narrow, the rest
// of the row is below the name.
func modelTable(list modelList, terminal int) string {
	const line = "%-*s  %6s  %6s  %6s  %6s  %-3s  %s\n"
	rest := len(fmt.Sprintf(strings.TrimSuffix(line, "\n"), 0, "", "", "", "", "", "", abilityLetters(nil)))
	width := len("MODEL")
	for _, m := range list.Models {
		width = max(width, min(len(m.Model), longestName))
	}
	if terminal > 0 {
		width = max(min(width, terminal-rest), len("MODEL"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, line, width, "MODEL", "WINDOW", "OUTPUT", "IN $", "OUT $", "USE", "CAN")
	var reasons []string
	for _, m := range list.Models {
		use := "yes"
		if !m.Usable {
			use = "no"
			provider, _, _ := strings.Cut(m.Model, "/")
			reasons = append(reasons, "no: "+provider+": "+m.Why)
		}
		in, out := "?", "?"
		if m.Price != nil {
			in, out = dollars(m.Price.Input), dollars(m.Price.Output)
		}
		name := m.Model
		if terminal > 0 && max(len(name), width)+rest > terminal {
			b.WriteString(name + "\n")
			name = ""
		}
		fmt.Fprintf(&b, line, width, name, thousands(m.ContextWindow), thousands(m.MaxOutput), in, out, use, abilityLetters(m.Can))
	}
	fmt.Fprintf(&b, "\n%d models; prices in USD per million tokens, as of %s.\n", len(list.Models), list.Date)
	b.WriteString("can: t tools, r reasoning, s answers by schema, i images, f files, a audio\n")
	for _, r := range slices.Compact(reasons) {
		b.WriteString(r + "\n")
	}
	return b.String()
}

// abilityLetters shows each ability at a fixed position, so that a column of them
// lines up.
func abilityLetters(can []string) string {
	var b strings.Builder
	for _, ability := range models.Abilities() {
		if slices.Contains(can, ability) {
			b.WriteByte(ability[0])
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// thousands returns a number of tokens in short form: 128k, 1M, 1.05M.
func thousands(n int) string {
	switch {
	case n == 0:
		return "?"
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return trimZeros(fmt.Sprintf("%.1f", float64(n)/1000)) + "k"
	}
	return trimZeros(fmt.Sprintf("%.2f", float64(n)/1_000_000)) + "M"
}

func trimZeros(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }
