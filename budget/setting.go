package budget

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// None, in place of a limit, removes the limit. Numbers of retries use 0
// instead.
const None = -1

// Setting describes a limit, except for how it is enforced.
type Setting struct {
	// Name is its name in files, Flag its flag of the command line, if it has one.
	Name, Flag string
	Kind       Kind
	// Unit is the unit that it counts, as in "3 of 5 cycles".
	Unit string
	// Low and High are the smallest and the largest value in a file, 0 for no bound,
	// and Default is the value of an unset limit.
	Low, High, Default float64
	// Stops reports whether reaching it ends a run with a reason of its own. The cycle
	// cap does not: on_limit sets what reaching it means.
	Stops bool
	// About describes what it bounds, with the default in brackets. Example is an
	// example value.
	About, Example string

	// of returns the limit as a number, nil for a number of retries.
	of func(Limits) float64
	// used returns how much of it a run has used, nil if it bounds each call
	// separately.
	used    func(Spent) float64
	forbids calls
}

// Kind is what a limit bounds.
type Kind int

// The kinds, in the order in which limits are listed.
const (
	Money Kind = iota
	Count
	Tokens
	Time
	// Idle is time without progress.
	Idle
	// Each is for limits on each call, request or result.
	Each
)

// calls is the kind of calls that an exhausted count forbids.
type calls int

const (
	modelCalls calls = iota + 1
	toolCalls
)

// Place returns a pointer to the limit: an *int, *int64 or *float64, or a **int for a
// number of retries.
func (s *Setting) Place(l *Limits) any {
	return reflect.ValueOf(l).Elem().FieldByName(s.Field()).Addr().Interface()
}

// Field returns the name of the limit's field in [Limits].
func (s *Setting) Field() string {
	i := slices.IndexFunc(settings[:], func(other Setting) bool { return other.Name == s.Name })
	return reflect.TypeFor[Limits]().Field(i).Name
}

// Value returns the limit as a number; false for a number of retries.
func (s *Setting) Value(l Limits) (n float64, ok bool) {
	if s.of == nil {
		return 0, false
	}
	return s.of(l), true
}

// Used returns how much of the limit a run has used, 0 if it bounds each call
// separately.
func (s *Setting) Used(spent Spent) float64 {
	if s.used == nil {
		return 0
	}
	return s.used(spent)
}

// Table returns all limits, in the order in which they are listed.
func Table() []Setting { return slices.Clone(settings[:]) }

// Find returns the limit with a name; false if there is none.
func Find(name string) (Setting, bool) {
	i := slices.IndexFunc(settings[:], func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, false
	}
	return settings[i], true
}

// Settings returns the names of the limits.
func Settings() []string { return names(func(Setting) bool { return true }) }

// Stopping returns the names of the limits that end a run with a reason of their own.
// The cycle limit is not one of them: on_limit sets what reaching it means.
func Stopping() []string { return names(func(s Setting) bool { return s.Stops }) }

func names(which func(Setting) bool) []string {
	var names []string
	for _, s := range settings {
		if which(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// IsMoney reports whether a setting limits the cost of a run.
func IsMoney(setting string) bool {
	s, known := Find(setting)
	return known && s.Kind == Money
}

// Lacks returns the names of the recommended limits that are not set.
func (l Limits) Lacks() []string {
	var names []string
	if cost, _ := l.CostCap(); cost == 0 {
		names = append(names, CostPerRun)
	}
	for _, s := range settings {
		if is, _ := s.Value(l); is == 0 && s.Default > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// Errors of [Limits.Set].
var (
	// ErrUnknownSetting: there is no limit with that name.
	ErrUnknownSetting = errors.New("budget: unknown setting")
	// ErrBadValue: the limit cannot have that value.
	ErrBadValue = errors.New("budget: bad value")
)

// UnpricedError is returned for a cost limit that cannot be enforced, because the price
// of these models is unknown.
type UnpricedError struct {
	Models []string
	USD    float64
}

// Error names the models and the limit.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("no price is known for %s, so the cost limit of USD %.2f cannot be enforced", strings.Join(e.Models, ", "), e.USD)
}

// Uncounted returns a warning that a cost limit does not cover the models with an
// unknown price; it is empty if there are none.
func (l Limits) Uncounted(models []string) string {
	names := strings.Join(models, ", ")
	switch usd, _ := l.CostCap(); {
	case len(models) == 0:
		return ""
	case usd > 0:
		return fmt.Sprintf("no price is known for %s, so the default cost limit of USD %.2f cannot stop its calls", names, usd)
	}
	return "no price is known for " + names + ", so the run's cost is not counted in full"
}

// Set replaces the limit with the given JSON name. A value must be finite and
// above 0, and whole if the limit counts something; a number of retries may be
// 0, and [None] removes any other limit. On an error nothing has changed.
func (l *Limits) Set(setting string, value float64) error {
	s, known := Find(setting)
	if !known {
		return fmt.Errorf("%w: %q", ErrUnknownSetting, setting)
	}
	switch p := s.Place(l).(type) {
	case *float64:
		return setLimit(p, setting, value)
	case *int:
		return setInteger(p, setting, value)
	case *int64:
		return setInteger(p, setting, value)
	default:
		return setRetries(p.(**int), setting, value)
	}
}

func setLimit(p *float64, setting string, value float64) error {
	switch {
	case value == None:
		*p = 0
	case !(value > 0) || math.IsInf(value, 0):
		return fmt.Errorf("%w: %s cannot be %v; it must be above 0, or none", ErrBadValue, setting, value)
	default:
		*p = value
	}
	return nil
}

// maxInteger is the largest count that a float64 holds exactly.
const maxInteger = 1 << 53

func whole(setting string, value float64) error {
	if value != math.Trunc(value) || math.Abs(value) > maxInteger {
		return fmt.Errorf("%w: %s must be a whole number, not %v", ErrBadValue, setting, value)
	}
	return nil
}

func setInteger[T int | int64](p *T, setting string, value float64) error {
	if err := whole(setting, value); err != nil {
		return err
	}
	n := float64(*p)
	if err := setLimit(&n, setting, value); err != nil {
		return err
	}
	*p = T(n)
	return nil
}

func setRetries(p **int, setting string, value float64) error {
	if err := whole(setting, value); err != nil {
		return err
	}
	if value < 0 {
		return fmt.Errorf("%w: %s cannot be %v; it must be 0 or above", ErrBadValue, setting, value)
	}
	*p = new(int(value))
	return nil
}

// Use is how much of a limit a run has used.
type Use struct {
	Setting string `json:"setting"`
	// Unit is what the limit counts, as in "3 of 5 cycles"; "" for money and time, which
	// are in US dollars and in seconds.
	Unit  string  `json:"unit,omitempty"`
	Used  float64 `json:"used"`
	Limit float64 `json:"limit"`
}

// Uses returns how much of each limit that bounds a whole run is used, in the order in
// which limits are listed. A limit that is not set is left out.
func (l Limits) Uses(s Spent) (uses []Use) {
	for i := range settings {
		x := &settings[i]
		if x.used == nil || x.Kind == Each || x.of(l) <= 0 {
			continue
		}
		uses = append(uses, Use{x.Name, x.Unit, x.used(s), x.of(l)})
	}
	return uses
}
