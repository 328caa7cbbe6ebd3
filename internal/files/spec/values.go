package spec

import (
	"fmt"
	"slices"
	"strings"
)

func oneOf(r *report, path, value string, allowed ...string) {
	if value == "" && !r.has(path) || slices.Contains(allowed, value) {
		return
	}
	// A value of another type is already reported, and has left an empty one.
	if value == "" && r.reported(path) {
		return
	}
	expected := choice(allowed)
	if meant := closest(value, allowed); meant != "" {
		r.at(path, expected, "is %q; did you mean %s?", value, meant)
		return
	}
	r.at(path, expected, "is %q", value)
}

// choice says that a value is one of some.
func choice(allowed []string) string {
	if len(allowed) == 1 {
		return allowed[0]
	}
	return "one of " + strings.Join(allowed, ", ")
}

// single reports a mapping that does not have exactly one of some keys.
func single(r *report, path, expected string, given ...bool) {
	n := 0
	for _, is := range given {
		if is {
			n++
		}
	}
	if n != 1 && !r.reported(path) {
		r.at(path, expected, "has %d of them", n)
	}
}

// missing reports that there is no value at a path, unless that is only so
// because something was wrong with what stood there.
func missing(r *report, path, expected string) {
	for at := path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if r.reported(at) {
			return
		}
	}
	r.at(path, expected, "is missing")
}

func notEmpty(r *report, path, value string) {
	if value == "" && r.has(path) && !r.reported(path) {
		r.at(path, "a text", "is empty")
	}
}

func within[N int | int64 | float64](r *report, path string, v *N, low, high N) {
	inside(r, path, v, low, high, "")
}

func inside[N int | int64 | float64](r *report, path string, v *N, low, high N, or string) {
	if v == nil || r.reported(path) || *v >= low && *v <= high {
		return
	}
	expected := fmt.Sprintf("%v to %v", low, high)
	if float64(high) >= 1_000_000_000 && *v < low {
		expected = fmt.Sprintf("at least %v", low)
	}
	r.at(path, expected+or, "is %v", *v)
}

func money(r *report, path string, usd *float64) {
	if usd == nil || r.reported(path) || *usd > 0 || *usd == None && (isNone(r.places[path]) || !r.has(path)) {
		return
	}
	r.at(path, "an amount in USD above 0, or none", "is %v", *usd)
}
