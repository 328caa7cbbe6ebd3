package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/budget"
	"github.com/pawlrun/pawl/journal"
	"github.com/spf13/cobra"
)

func (a *app) budgetCommand() *cobra.Command {
	var f verbFlags
	c := &cobra.Command{
		Use:   "budget RUN SETTING VALUE",
		Short: "Change a limit of a run, also while it goes",
		Long:  "Changes a limit of a run. SETTING is one of: " + strings.Join(limitSettings(), ", ") + ".",
		Example: "  pawl runs budget k7x2 usd_per_run 10\n" +
			"  pawl runs budget k7x2 max_cycles 80",
		Args: cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			value, err := limitValue(args[1], args[2])
			if err != nil {
				return err
			}
			return a.withOpenRun(c.Context(), args[0], func(s *session, r journal.Run) error {
				return s.deliverAndResume(c.Context(), r, journal.Command{Kind: journal.Raise, Setting: args[1], Value: value}, f)
			})
		},
	}
	f.resumable(c)
	return c
}

// limitSettings are the names of the limits, as the budget rules declare them.
func limitSettings() []string {
	t := reflect.TypeFor[budget.Limits]()
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// limitValue checks a limit's new value against the setting's own type.
func limitValue(setting, text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return 0, usagef("VALUE is %q; it must be a number above 0", text)
	}
	raw, err := json.Marshal(map[string]float64{setting: value})
	if err != nil {
		return 0, usagef("VALUE is %q; it must be a number above 0", text)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	var l budget.Limits
	err = dec.Decode(&l)
	if _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); wrongType {
		return 0, usagef("VALUE is %q; %s counts whole things", text, setting)
	}
	if err != nil {
		return 0, usagef("there is no limit %q; it can be %s", setting, strings.Join(limitSettings(), ", "))
	}
	return value, nil
}
