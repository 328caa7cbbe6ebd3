package decode

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Closest returns the candidate that a misspelt word most likely meant, or "".
func Closest(word string, candidates []string) string {
	best, bestDistance, wanted := "", 3, plain(word)
	for _, c := range candidates {
		if plain(c) == wanted {
			return c
		}
		limit := 2
		if len(c) < 5 {
			limit = 1
		}
		if longer := len(word) - len(c); longer > limit || -longer > limit {
			continue
		}
		if d := distance(word, c); d <= limit && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// plain removes the most common differences: case, dashes and underscores.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours that
// turn a into b.
func distance(a, b string) int {
	var before, last, row []int
	for j := range len(b) + 1 {
		last = append(last, j)
	}
	for i := range len(a) {
		row = append(make([]int, 0, len(b)+1), i+1)
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row = append(row, d)
		}
		before, last = last, row
	}
	return last[len(b)]
}

// homes returns the place where each key of a file belongs, to suggest it for a
// misplaced key. If there are several places, it prefers the outermost one, then one
// outside a list, then the mapping with more keys.
func homes(root reflect.Type) map[string]string {
	type place struct {
		t    reflect.Type
		path string
	}
	into, seen := map[string]string{}, map[reflect.Type]bool{}
	for level := []place{{root, ""}}; len(level) > 0; {
		var next []place
		slices.SortStableFunc(level, func(a, b place) int {
			return cmp.Or(strings.Count(a.path, "[]")-strings.Count(b.path, "[]"), b.t.NumField()-a.t.NumField())
		})
		for _, at := range level {
			if seen[at.t] { // steps contain steps
				continue
			}
			seen[at.t] = true
			fields := FieldsOf(at.t)
			for _, name := range BuiltKeys(at.t) {
				path := Join(at.path, name)
				into[name] = cmp.Or(into[name], path)
				t := at.t.FieldByIndex(fields[name]).Type
				for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
					if t.Kind() == reflect.Slice {
						path += "[]"
					}
					t = t.Elem()
				}
				if t.Kind() == reflect.Struct {
					next = append(next, place{t, path})
				}
			}
		}
		level = next
	}
	return into
}
